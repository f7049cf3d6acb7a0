package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// awhile makes the passes over a Service that are due within a time, also those that follow an error.
func (w *world) awhile(name string, d time.Duration) {
	w.t.Helper()
	testkit.Passes(d, func() (time.Duration, error) {
		w.fillServices()
		return w.Reconcile(w.t.Context(), w.get(name))
	})
}

// TestUnnamedNLBOfAGroupGoes: a Service names the NLB of a group by its ID and may not use it. The last Service of the group goes, and the
// NLB stays: the other one may still get there. Once it does not name the NLB any more, the NLB goes, also after a restart in between.
func TestUnnamedNLBOfAGroupGoes(t *testing.T) {
	t.Parallel()
	hopefuls := map[string]func(w *world, id string){
		"in another group": func(w *world, id string) {
			w.groupWorld(grouped("web", "other", 1, testkit.TCP(80)))
			w.names(id, false)
			w.awhile("web", time.Minute)
		},
		"on one of its own": func(w *world, id string) {
			w.groupWorld(newService("web", testkit.TCP(80), born(1)))
			w.names(id, false)
			w.awhile("web", time.Minute)
		},
		"without a pass": func(w *world, id string) {
			w.put(newService("web", testkit.TCP(80), born(1)))
			w.names(id, false)
		},
	}
	unnamings := map[string][]func(*corev1.Service){
		"annotation removed": {without(annotation.LoadBalancerID)},
		"in a group":         {without(annotation.LoadBalancerID), with(annotation.Group, "third")},
		"ClusterIP":          {func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }},
		"deleted":            nil,
	}
	for who, hopes := range hopefuls {
		for end, changes := range unnamings {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, restarted %v", who, end, restarted), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
						w.restart()
						w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(81)))
						id := w.named(edgeNLB)
						hopes(w, id)
						w.newEvents()
						w.remove("shop")
						w.live("shop", time.Minute)
						w.vanish("shop")
						if events := strings.Join(w.newEvents(), "\n"); strings.Count(events, problem.ReasonLoadBalancerKept) != 1 ||
							!strings.Contains(events, "default/web") {
							t.Errorf("events %s, want one %s that names the other Service", events, problem.ReasonLoadBalancerKept)
						}
						if kept := Product.KeptFor(w.get("web")); !slices.Equal(kept, []string{id}) {
							t.Errorf("%v is kept for web, want %s", kept, id)
						}
						if restarted {
							w.restart()
						}
						w.awhile("web", 31*time.Minute)
						if orphans := w.orphans(w.census()); !w.exists(id) || len(orphans) > 0 {
							t.Fatalf("the NLB is there: %v; orphans %v", w.exists(id), orphans)
						}
						if restarted {
							w.restart()
						}
						if w.change("web", changes...); end == "deleted" {
							w.remove("web")
						}
						w.awhile("web", 5*time.Minute)
						if w.exists(id) {
							t.Errorf("the NLB stays: %v; events %v", w.ownersOf(), w.newEvents())
						}
						if svc := w.get("web"); strings.Contains(fmt.Sprint(svc.Status.Conditions), driver.ConditionsKept) {
							t.Errorf("conditions %v", svc.Status.Conditions)
						}
						w.calls()
						w.awhile("web", 5*time.Minute)
						if writes := writes(w.calls()); len(writes) > 0 {
							t.Errorf("further writes %v", writes)
						}
					})
				})
			}
		}
	}
}

// TestPreservedOnNLBOfAGroupByID: an NLB of a group was kept for a Service that is on it by its ID, and that moves. It keeps its listeners
// there, as its annotation says.
func TestPreservedOnNLBOfAGroupByID(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted within the grace %v", deleted), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(81)))
				id := w.named(edgeNLB)
				w.groupWorld(newService("web", testkit.TCP(80), born(1), with(annotation.LoadBalancerID, id),
					with(annotation.ForceOverrideListeners, "true"), with(annotation.PreserveOnDelete, "true")))
				w.remove("shop")
				w.live("shop", time.Minute)
				w.vanish("shop")
				w.change("web", without(annotation.LoadBalancerID))
				if deleted {
					w.awhile("web", 10*time.Second)
					w.remove("web")
				}
				w.awhile("web", 15*time.Minute)
				if left := w.ownersOf()[edgeNLB]; !slices.Equal(left, []string{"tcp:80 web"}) {
					t.Errorf("the NLB has %v; %v", left, w.ownersOf())
				}
			})
		})
	}
}
