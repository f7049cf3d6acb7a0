package backend_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// TestOnPremisesNodeIsResolved: a machine outside of Alibaba Cloud has no instance to wait for, so it keeps no backend server in a group.
func TestOnPremisesNodeIsResolved(t *testing.T) {
	t.Parallel()
	none := func(*corev1.Node) (string, error) { return "", errors.New("no instance") }
	for value, unresolved := range map[string]bool{"true": false, "": true} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{nodes.LabelOnPremises: value}}}
		got := backend.NodeOf(node, none, time.Now())
		if got.Unresolved != unresolved || got.Candidate {
			t.Errorf("on-premises=%q: unresolved = %v, candidate = %v, want %v, false", value, got.Unresolved, got.Candidate, unresolved)
		}
	}
}

func TestUntilSilence(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) backend.Node { return backend.Node{Ready: true, ReadyUntil: now.Add(d)} }
	for name, test := range map[string]struct {
		nodes []backend.Node
		want  time.Duration
	}{
		"all report":           {nodes: []backend.Node{{Ready: true}, {}}},
		"the first of several": {nodes: []backend.Node{in(20 * time.Second), {Ready: true}, in(10 * time.Second)}, want: 10 * time.Second},
		"just over":            {nodes: []backend.Node{in(-time.Second)}, want: time.Second},
	} {
		if got := backend.NewNodeSet(test.nodes).UntilSilence(now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestDead: nothing is dead that may be a node which is not known yet.
func TestDead(t *testing.T) {
	t.Parallel()
	working, failed := backend.Node{Name: "a", InstanceID: "i-a", Ready: true}, backend.Node{Name: "b", InstanceID: "i-b"}
	known, doubtful := backend.NewNodeSet([]backend.Node{working, failed}), backend.NewNodeSet([]backend.Node{working, failed,
		{Name: "c", Unresolved: true, InDoubt: true}})
	for _, test := range []struct {
		name string
		set  *backend.NodeSet
		id   string
		want bool
	}{
		{"works", known, "i-a", false},
		{"does not work", known, "i-b", true},
		{"gone", known, "i-c", true},
		{"does not work, others in doubt", doubtful, "i-b", true},
		{"may be one in doubt", doubtful, "i-c", false},
		{"no nodes known", nil, "i-c", false},
	} {
		if got := test.set.Dead(test.id); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestNodeEventsThatDoNotMatter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*corev1.Node)
		same   bool
	}{
		{"heartbeat", func(n *corev1.Node) { testkube.Ready(n).LastHeartbeatTime = metav1.Now() }, true},
		{"capacity", func(n *corev1.Node) { n.Status.Capacity = corev1.ResourceList{} }, true},
		{"readiness", testkube.NotReady(now), false},
		{"silence", testkube.Silent(now.Add(-time.Second)), false},
		{"cordon", testkube.Cordoned, false},
		{"provider ID", testkube.ProviderID(""), false},
		{"label", testkube.NodeLabel("pool", "x"), false},
		{"taint of others", testkube.Taint("example.com/x"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			was, is := backend.NodeOf(testkube.Node("a"), testkube.InstanceID, now), backend.NodeOf(testkube.Node("a", test.change), testkube.InstanceID,
				now)
			if got := backend.SameNode(was, is); got != test.same {
				t.Errorf("SameNode = %v, want %v", got, test.same)
			}
		})
	}
}
