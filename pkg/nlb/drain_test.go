package nlb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// setWeight sets the weight of a server of the one group by hand.
func (w *world) setWeight(instance string, weight int) {
	w.t.Helper()
	group := w.onlyGroup().ID
	for _, s := range testkit.Must(w.account.Client.ListNLBServers(w.t.Context(), group))(w.t) {
		if s.ID == instance {
			s.Weight = weight
			testkit.Must(w.account.Client.UpdateNLBServers(w.t.Context(), group, []alicloud.NLBServer{s}))(w.t)
		}
	}
	w.later(2 * settle)
	w.drift()
}

func (w *world) putNode(name string, change ...func(*corev1.Node)) {
	w.t.Helper()
	testkit.Check(w.t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Add(testkit.Node(name, change...)))
}

// TestRollingUpdateWithIgnoredWeights: pods are replaced node by node. Each node drains, and has its weight again when the next pod is
// there; one that somebody has set stays, also 0.
func TestRollingUpdateWithIgnoredWeights(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			step := func(what, want string) {
				t.Helper()
				if restarts {
					w.restart()
				}
				w.converge("web")
				if got := w.listeners(w.balancer("web").ID); len(got) != 1 || got[0] != "TCP:80 "+want {
					t.Errorf("%s: %v, want %s", what, got, want)
				}
			}
			w.addNodes("n1", "n2", "n3")
			w.putSlice(slice1("10.9.0.1@n1", "10.9.1.1@n2", "10.9.2.1@n3"))
			w.put(newService("web", testkit.TCP(80), testkit.LocalTraffic, with(annotation.IgnoreWeightUpdate, "on")))
			step("new", "i-n1:30080=1 i-n2:30080=1 i-n3:30080=1")
			w.setWeight("i-n2", 7)
			w.setWeight("i-n3", 0)
			step("weights by hand", "i-n1:30080=1 i-n2:30080=7 i-n3:30080=0")
			w.putSlice(slice1("!10.9.0.1@n1", "10.9.1.1@n2", "10.9.2.1@n3"))
			step("n1 drains", "i-n1:30080=0 i-n2:30080=7 i-n3:30080=0")
			w.putSlice(slice1("!10.9.0.1@n1", "10.9.0.2@n1", "10.9.1.1@n2", "10.9.2.1@n3"))
			step("n1 is back", "i-n1:30080=1 i-n2:30080=7 i-n3:30080=0")
			w.putSlice(slice1("10.9.0.2@n1", "!10.9.1.1@n2", "10.9.2.1@n3"))
			step("n2 drains", "i-n1:30080=1 i-n2:30080=0 i-n3:30080=0")
			w.putSlice(slice1("10.9.0.2@n1", "10.9.1.2@n2", "!10.9.2.1@n3"))
			step("n2 is back, and n3 drains", "i-n1:30080=1 i-n2:30080=7 i-n3:30080=0")
			w.putSlice(slice1("10.9.0.2@n1", "10.9.1.2@n2", "10.9.2.2@n3"))
			step("n3 is back", "i-n1:30080=1 i-n2:30080=7 i-n3:30080=0")
			w.quiet("web")
		})
	}
}

// TestNodesDrainWithIgnoredWeights: nodes that are about to go, or are cordoned, drain as they do without the annotation. If all of them
// leave, all keep their weights.
func TestNodesDrainWithIgnoredWeights(t *testing.T) {
	t.Parallel()
	cordoned := func(node *corev1.Node) { node.Spec.Unschedulable = true }
	for name, leaves := range map[string]func(*corev1.Node){"taint": testkit.Taint(nodes.TaintToBeDeleted), "cordon": cordoned} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(3, testkit.TCP(80), with(annotation.RemoveUnscheduledBackend, "on"))
				step := func(what, want string) {
					t.Helper()
					w.converge("web")
					if got := w.listeners(w.balancer("web").ID); len(got) != 1 || got[0] != "TCP:80 "+want {
						t.Errorf("%s: %v, want %s", what, got, want)
					}
				}
				w.putNode("n1", leaves)
				step("n1 drains", "i-n1:30080=0 i-n2:30080=100 i-n3:30080=100")
				w.change("web", with(annotation.IgnoreWeightUpdate, "on"))
				step("the annotation comes while n1 drains", "i-n1:30080=0 i-n2:30080=100 i-n3:30080=100")
				w.putNode("n1")
				step("n1 is back", "i-n1:30080=100 i-n2:30080=100 i-n3:30080=100")
				w.putNode("n1", leaves)
				w.putNode("n2", leaves)
				step("n1 and n2 drain", "i-n1:30080=0 i-n2:30080=0 i-n3:30080=100")
				w.putNode("n3", leaves)
				step("all leave", "i-n1:30080=100 i-n2:30080=100 i-n3:30080=100")
				w.quiet("web")
			})
		})
	}
}

// TestErrorWhileCordoned: whether a cordoned node is to drain is not known after a restart. It stays as it is, and others go on to drain.
func TestErrorWhileCordoned(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(3, testkit.TCP(80), with(annotation.RemoveUnscheduledBackend, "on"))
		cordoned := func(node *corev1.Node) { node.Spec.Unschedulable = true }
		w.putNode("n1", cordoned)
		w.converge("web")
		weights(0, 100, 100)(t, w)
		w.change("web", with(annotation.RemoveUnscheduledBackend, "yes"))
		w.restart()
		w.putNode("n2", testkit.Taint(nodes.TaintToBeDeleted))
		w.converge("web")
		weights(0, 0, 100)(t, w)
		w.putNode("n2")
		w.putNode("n3", cordoned)
		w.converge("web")
		if got := w.listeners(w.balancer("web").ID); len(got) != 1 || got[0] != "TCP:80 i-n1:30080=0 i-n2:30080=100 i-n3:30080=100" {
			t.Errorf("n2 stays after all, and n3 is cordoned: %v", got)
		}
	})
}

// TestPodsDrainWithIgnoredWeights: a pod that terminates gets no new connections.
func TestPodsDrainWithIgnoredWeights(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2")
		w.pods("n1", "n2")
		w.put(newService("web", testkit.TCP(80), eni, with(annotation.IgnoreWeightUpdate, "on")))
		w.converge("web")
		w.pods("!n1", "n2")
		w.converge("web")
		weights(0, 100)(t, w)
		w.pods("!n1", "!n2")
		w.converge("web")
		weights(100, 100)(t, w)
	})
}
