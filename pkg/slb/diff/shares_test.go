package diff_test

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestSharesThatHardlyDiffer: numbers of endpoints as weights are written only where a share of the traffic differs by more than a tenth.
func TestSharesThatHardlyDiffer(t *testing.T) {
	t.Parallel()
	const group = "k8s/30080/web/default/c1"
	servers := func(weights []int) []alicloud.Backend {
		var backends []alicloud.Backend
		for i, weight := range weights {
			key := alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: string(rune('a' + i)), Port: 30080}
			backends = append(backends, alicloud.Backend{BackendKey: key, Weight: weight, Description: group})
		}
		return backends
	}
	for _, test := range []struct {
		name           string
		have, want     []int
		counted, exact bool
		written        bool
	}{
		{"weights of annotations", []int{10, 10}, []int{10, 11}, false, false, true},
		{"one endpoint more", []int{10, 10}, []int{10, 11}, true, false, false},
		{"one endpoint more, drift", []int{10, 10}, []int{10, 11}, true, true, false},
		{"second endpoint", []int{1, 1}, []int{1, 2}, true, false, true},
		{"second endpoint of one node of many", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []int{2, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true, false, false},
		{"second endpoint of one node of many, drift", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []int{2, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true, true,
			true},
		{"all twice", []int{1, 2, 3}, []int{2, 4, 6}, true, true, false},
		{"first endpoint", []int{0, 100, 100}, []int{1, 100, 100}, true, false, true},
		{"last endpoint", []int{1, 100, 100}, []int{0, 100, 100}, true, false, true},
		{"together with a first endpoint", []int{0, 100, 100}, []int{1, 100, 101}, true, false, true},
		{"a node joins", []int{10, 10}, []int{10, 11, 10}, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			desired := &model.Model{Exact: test.exact, Groups: []model.Group{{Name: group, Backends: servers(test.want), Counted: test.counted}}}
			actual := &model.Model{LoadBalancer: alicloud.LoadBalancer{ID: "lb-1"},
				Groups: []model.Group{{ID: "rsp-1", Name: group, Backends: servers(test.have)}}}
			written := false
			for _, step := range diff.Diff(desired, actual, webName, "c1").Steps {
				written = written || step.Op == model.OpSetBackends
			}
			if written != test.written {
				t.Errorf("weights written: %v, want %v", written, test.written)
			}
		})
	}
}
