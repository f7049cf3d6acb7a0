package nlb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestPlanOfExistingNLBs: the plan is what the manager then does, also where Services share an existing NLB, or move between that and
// others. Each Service is planned with what is there before.
func TestPlanOfExistingNLBs(t *testing.T) {
	t.Parallel()
	const creates = "create server group, add servers, create listener"
	first := map[string][]string{"two new ones want one port": {"web: " + creates, "shop: " + creates}}
	use := func(id string) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			without(annotation.Group)(svc)
			with(annotation.LoadBalancerID, id)(svc)
			with(annotation.ForceOverrideListeners, "true")(svc)
		}
	}
	own := func(svc *corev1.Service) {
		without(annotation.LoadBalancerID)(svc)
		without(annotation.ForceOverrideListeners)(svc)
	}
	join := func(svc *corev1.Service) {
		own(svc)
		with(annotation.Group, "edge")(svc)
	}
	port := testkit.TCP
	for name, prepare := range map[string]func(w *world, id string){
		"two new ones want one port": func(w *world, id string) {
			w.addNodes("n1", "n2")
			w.put(newService("web", born(0), port(80), use(id)))
			w.put(newService("shop", born(1), port(80), use(id)))
		},
		"from a group": func(w *world, id string) {
			w.groupWorld(grouped("web", "edge", 0, port(80)), grouped("shop", "edge", 1, port(81)))
			w.change("web", use(id))
		},
		"the last one from a group": func(w *world, id string) {
			w.groupWorld(grouped("web", "edge", 0, port(80)))
			w.change("web", use(id))
		},
		"into a group": func(w *world, id string) {
			w.groupWorld(newService("web", born(0), port(80), use(id)), grouped("shop", "edge", 1, port(81)))
			w.change("web", join)
		},
		"from one of its own": func(w *world, id string) {
			w.groupWorld(newService("web", born(0), port(80)))
			w.change("web", use(id))
		},
		"to one of its own": func(w *world, id string) {
			w.groupWorld(newService("web", born(0), port(80), use(id)))
			w.change("web", own)
		},
		"deleted": func(w *world, id string) {
			w.groupWorld(newService("web", born(0), port(80), use(id)), newService("shop", born(1), port(81), use(id)))
			w.remove("web")
			w.remove("shop")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(_ *testing.T, w *world) {
				prepare(w, w.existing("by-hand"))
				w.wantPlan(first[name]...)
			})
		})
	}
}
