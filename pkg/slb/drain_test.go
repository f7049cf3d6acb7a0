package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

func ignoresWeights(svc *corev1.Service) { annotate(svc, annotation.IgnoreWeightUpdate, "on") }

// setWeight sets the weight of a backend server of the one group by hand.
func (w *world) setWeight(instance string, weight int) {
	w.t.Helper()
	lbs, err := w.api.DescribeLoadBalancers(w.t.Context(), alicloud.LoadBalancerQuery{})
	if err != nil || len(lbs) != 1 {
		w.t.Fatalf("%d CLBs (%v), want one", len(lbs), err)
	}
	groups, err := w.api.DescribeVServerGroups(w.t.Context(), lbs[0].ID)
	if err != nil || len(groups) != 1 {
		w.t.Fatalf("%d groups (%v), want one", len(groups), err)
	}
	group, err := w.api.DescribeVServerGroup(w.t.Context(), groups[0].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, b := range group.Backends {
		if b.ServerID == instance {
			b.Weight = weight
			if err := w.api.SetBackends(w.t.Context(), group.ID, []alicloud.Backend{b}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.drift("web")
}

// endpoints has the one EndpointSlice of the Service name these endpoints.
func (w *world) endpoints(items ...string) {
	w.t.Helper()
	slice := testSlice(testService("web", 80).Spec.Ports[0], items...)
	slice.Name = "web-1"
	w.putSlice(slice)
}

// TestRollingUpdateWithIgnoredWeights: pods are replaced node by node. Each node drains, and has its weight again when the next pod is
// there; one that somebody has set stays, also 0.
func TestRollingUpdateWithIgnoredWeights(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		w := newWorld(t)
		threeNodes(w)
		step := func(what string, want ...string) {
			t.Helper()
			if restarts {
				w.restart()
			}
			w.mustPass("web")
			w.wantBackends(what, want...)
		}
		svc := testService("web", 80)
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		ignoresWeights(svc)
		w.endpoints("10.9.0.1@a", "10.9.1.1@b", "10.9.2.1@c")
		w.put(svc)
		step("new", "i-a 1", "i-b 1", "i-c 1")
		w.setWeight("i-b", 7)
		w.setWeight("i-c", 0)
		step("weights by hand", "i-a 1", "i-b 7", "i-c 0")
		w.endpoints("!10.9.0.1@a", "10.9.1.1@b", "10.9.2.1@c")
		step("a drains", "i-a 0", "i-b 7", "i-c 0")
		w.endpoints("!10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b", "10.9.2.1@c")
		step("a is back", "i-a 1", "i-b 7", "i-c 0")
		w.endpoints("10.9.0.2@a", "!10.9.1.1@b", "10.9.2.1@c")
		step("b drains", "i-a 1", "i-b 0", "i-c 0")
		w.endpoints("10.9.0.2@a", "10.9.1.2@b", "!10.9.2.1@c")
		step("b is back, and c drains", "i-a 1", "i-b 7", "i-c 0")
		w.endpoints("10.9.0.2@a", "10.9.1.2@b", "10.9.2.2@c")
		step("c is back", "i-a 1", "i-b 7", "i-c 0")
		w.wantRest("web")
	}
}

// TestNodesDrainWithIgnoredWeights: nodes that are about to go, or are cordoned, drain as they do without the annotation. If all of them
// leave, all keep their weights.
func TestNodesDrainWithIgnoredWeights(t *testing.T) {
	t.Parallel()
	cordoned := func(node *corev1.Node) { node.Spec.Unschedulable = true }
	for name, leaves := range map[string]func(*corev1.Node){"taint": taintedBy(nodes.TaintToBeDeleted), "cordon": cordoned,
		"deletion": goesAway} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80)
			annotate(svc, annotation.RemoveUnscheduledBackend, "on")
			w.put(svc)
			w.mustPass("web")
			step := func(what string, want ...string) {
				t.Helper()
				w.mustPass("web")
				w.wantBackends(what, want...)
			}
			w.putNode(testNode("a", leaves))
			step("a drains", "i-a 0", "i-b 100", "i-c 100")
			w.change("web", ignoresWeights)
			step("the annotation comes while a drains", "i-a 0", "i-b 100", "i-c 100")
			w.putNode(testNode("a"))
			step("a is back", "i-a 100", "i-b 100", "i-c 100")
			w.putNode(testNode("a", leaves))
			step("a drains again", "i-a 0", "i-b 100", "i-c 100")
			w.putNode(testNode("b", leaves))
			step("b drains, too", "i-a 0", "i-b 0", "i-c 100")
			w.putNode(testNode("c", leaves))
			step("all leave", "i-a 100", "i-b 100", "i-c 100")
			w.wantRest("web")
		})
	}
}

// TestErrorWhileCordoned: whether a cordoned node is to drain is not known after a restart. It stays as it is, and others go on to drain.
func TestErrorWhileCordoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	annotate(svc, annotation.RemoveUnscheduledBackend, "on")
	w.put(svc)
	w.mustPass("web")
	cordoned := func(node *corev1.Node) { node.Spec.Unschedulable = true }
	w.putNode(testNode("a", cordoned))
	w.mustPass("web")
	w.wantBackends("a is cordoned", "i-a 0", "i-b 100", "i-c 100")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.RemoveUnscheduledBackend, "yes") })
	w.restart()
	w.mustPass("web")
	w.wantBackends("an error in the annotation", "i-a 0", "i-b 100", "i-c 100")
	w.putNode(testNode("b", taintedBy(nodes.TaintToBeDeleted)))
	w.mustPass("web")
	w.wantBackends("b is about to go", "i-a 0", "i-b 0", "i-c 100")
	w.putNode(testNode("b"))
	w.putNode(testNode("c", cordoned))
	w.mustPass("web")
	w.wantBackends("b stays after all, and c is cordoned", "i-a 0", "i-b 100", "i-c 100")
}

// TestPodsDrainWithIgnoredWeights: a pod that terminates gets no new connections.
func TestPodsDrainWithIgnoredWeights(t *testing.T) {
	t.Parallel()
	w, put := podWorld(t, eni, ignoresWeights)
	put("!a", "b")
	w.mustPass("web")
	if got := w.podBackends("k8s/8080/web/default/c1"); len(got) != 2 || got[0] != "eni 0" || got[1] != "eni 100" {
		t.Errorf("backend servers %v, want one with weight 0", got)
	}
	put("!a", "!b")
	w.mustPass("web")
	if got := w.podBackends("k8s/8080/web/default/c1"); len(got) != 2 || got[0] != "eni 100" || got[1] != "eni 100" {
		t.Errorf("backend servers %v, want both with their weights while all leave", got)
	}
}
