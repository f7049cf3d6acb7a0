package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestPlanOfCrowdedGroups: the plan is what the manager then does, also where Services of a group divide the backend servers of their CLB.
// Of two that come, there is room for one.
func TestPlanOfCrowdedGroups(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"nothing changes": func(*world) {},
		"a Service comes": func(w *world) { w.put(born(grouped("new", "edge", 90), 100)) },
		"two Services come": func(w *world) {
			w.put(born(grouped("new", "edge", 90), 100))
			w.put(born(grouped("newer", "edge", 91), 101))
		},
		"a Service goes":         func(w *world) { w.change("s0", deleteService) },
		"a Service leaves":       func(w *world) { w.change("s0", leaveGroup) },
		"a node leaves":          func(w *world) { w.deleteNode("n0") },
		"a node joins":           func(w *world) { w.addNode("n9") },
		"a Service with 2 comes": func(w *world) { w.put(born(withNodes(grouped("new", "edge", 90), 2), 100)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := smallWorld(t, 12, 10)
			for i := range 6 {
				w.addNode(fmt.Sprint("n", i))
			}
			for i := range 2 {
				w.put(born(grouped(fmt.Sprint("s", i), "edge", int32(80+i)), int64(i)))
			}
			w.carryOut()
			change(w)
			w.wantPlan()
		})
	}
}

func withNodes(svc *corev1.Service, n int) *corev1.Service {
	annotate(svc, annotation.BackendSubset, fmt.Sprint(n))
	return svc
}

// TestPlanOfExistingCLBs: the plan is what the manager then does, also where Services share an existing CLB, or move between that and the
// one of a group. Each Service is planned with what is there before.
func TestPlanOfExistingCLBs(t *testing.T) {
	t.Parallel()
	const creates = "set tags, create group, create listener, start listener"
	first := map[string][]string{
		"two new ones want one port":            {"web: " + creates, "shop: " + creates},
		"two new ones":                          {"web: " + creates, "shop: " + creates},
		"one leaves, another one gets its port": {"web: delete listener, delete group"},
	}
	use := func(id string) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			leaveGroup(svc)
			annotate(svc, annotation.LoadBalancerID, id)
			annotate(svc, annotation.ForceOverrideListeners, "true")
		}
	}
	join := func(svc *corev1.Service) {
		delete(svc.Annotations, key(annotation.LoadBalancerID))
		delete(svc.Annotations, key(annotation.ForceOverrideListeners))
		annotate(svc, annotation.Group, "edge")
	}
	for name, prepare := range map[string]func(w *world, id string){
		"two new ones want one port": func(w *world, id string) {
			w.unmade(reusing("web", id, "true", 80), reusing("shop", id, "true", 80))
		},
		"two new ones": func(w *world, id string) {
			w.unmade(reusing("web", id, "true", 80), reusing("shop", id, "true", 81))
		},
		"one leaves, another one gets its port": func(w *world, id string) {
			w.putAll(reusing("web", id, "true", 80))
			w.put(born(reusing("shop", id, "true", 80), 5))
			w.mustPass("shop")
			w.change("web", deleteService)
		},
		"from a group": func(w *world, id string) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.change("web", use(id))
		},
		"the last one from a group": func(w *world, id string) {
			w.putAll(grouped("web", "edge", 80))
			w.change("web", use(id))
		},
		"into a group": func(w *world, id string) {
			w.putAll(reusing("web", id, "true", 80), grouped("shop", "edge", 81))
			w.change("web", join)
		},
		"into a new group": func(w *world, id string) {
			w.putAll(reusing("web", id, "true", 80))
			w.change("web", join)
		},
		"in the middle of a move from a group": func(w *world, id string) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.midMove("web", use(id))
		},
		"deleted": func(w *world, id string) {
			w.putAll(reusing("web", id, "true", 80), reusing("shop", id, "true", 81))
			w.change("web", deleteService)
			w.change("shop", deleteService)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t)
			prepare(w, w.makeCLB().ID)
			w.wantPlan(first[name]...)
		})
	}
}
