package demo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

func TestToRelease(t *testing.T) {
	t.Parallel()
	machines := []cluster.Machine{{ID: "i-1", NodeName: "node-1"}, {ID: "i-2", NodeName: "node-2"}, {ID: "i-3", NodeName: "node-3"}}
	for name, tt := range map[string]struct {
		busy   []string
		leader string
		want   string
	}{
		"the one without a pod":                         {[]string{"node-1", "node-3"}, "workstation_1", "i-2"},
		"not the leader's":                              {[]string{"node-1", "node-3"}, "node-1_1", "i-2"},
		"one with a pod if the free one has the leader": {[]string{"node-1", "node-3"}, "node-2_1", "i-3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := map[string]corev1.Pod{}
			for _, node := range tt.busy {
				pods[node] = corev1.Pod{}
			}
			if got, err := toRelease(machines, pods, tt.leader); err != nil || got.ID != tt.want {
				t.Errorf("got %s, %v; want %s", got.ID, err, tt.want)
			}
		})
	}
	if got, err := toRelease(machines[:1], nil, "node-1_1"); err == nil {
		t.Errorf("%s is to be released, which has the leader", got.ID)
	}
}
