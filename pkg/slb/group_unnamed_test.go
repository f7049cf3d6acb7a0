package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// hopefuls are Services that name the CLB of a group by its ID and may not use it, and how they come to do that.
func hopefuls() map[string]func(w *world, id string) {
	name := func(w *world, id string) {
		w.change("web", func(svc *corev1.Service) {
			annotate(svc, annotation.LoadBalancerID, id)
			annotate(svc, annotation.ForceOverrideListeners, "true")
		})
	}
	return map[string]func(w *world, id string){
		"in another group": func(w *world, id string) {
			w.putAll(grouped("web", "other", 80))
			name(w, id)
			w.awhile("web", time.Second)
		},
		"new": func(w *world, id string) {
			w.put(born(reusing("web", id, "true", 80), 9))
			w.awhile("web", time.Second)
		},
		"without a pass": func(w *world, id string) { w.put(born(reusing("web", id, "true", 80), 9)) },
	}
}

// unnamed changes a Service to name no CLB by its ID.
func unnamed(svc *corev1.Service) { delete(svc.Annotations, key(annotation.LoadBalancerID)) }

// unnamings are ways in which the Service web comes to name the CLB of a group no more.
func unnamings() map[string]func(w *world) {
	return map[string]func(w *world){
		"annotation removed": func(w *world) { w.change("web", unnamed) },
		"in a group": func(w *world) {
			w.change("web", func(svc *corev1.Service) {
				delete(svc.Annotations, key(annotation.LoadBalancerID))
				annotate(svc, annotation.Group, "third")
			})
		},
		"deleted": func(w *world) { w.change("web", deleteService) },
		"ClusterIP": func(w *world) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		},
	}
}

// hopefulWorld makes a world in which the Service shop is alone in the group edge, and web names the CLB of that, which it may not use.
func hopefulWorld(t *testing.T, hopes func(w *world, id string)) (w *world, id string) {
	t.Helper()
	w = newWorld(t)
	w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
	w.restart()
	threeNodes(w)
	w.putAll(grouped("shop", "edge", 81))
	id = w.get("shop").Labels[driver.LabelLoadBalancerID]
	hopes(w, id)
	return w, id
}

// awhile makes the passes over a Service that are due within a time, also those that follow an error.
func (w *world) awhile(name string, d time.Duration) {
	w.t.Helper()
	testkit.Passes(d, func() (time.Duration, error) {
		w.fillGroups()
		return w.Reconcile(w.t.Context(), w.get(name))
	})
}

// edgeIsGone checks that the CLB of the group edge is gone.
func (w *world) edgeIsGone() {
	w.t.Helper()
	if _, there := w.state()[edgeCLB]; there {
		w.t.Errorf("the CLB stays: %v; events %v", w.ownersOf(), w.newEvents())
	}
}

// goes deletes a Service.
func (w *world) goes(name string) {
	w.t.Helper()
	w.change(name, deleteService)
	w.live(name, time.Minute)
	if held := w.get(name).Finalizers; len(held) > 0 {
		w.t.Fatalf("finalizers %v of %s stay", held, name)
	}
	w.vanish(name)
}

// TestUnnamedCLBOfAGroupGoes: a Service names the CLB of a group by its ID and may not use it. The last Service of the group goes, and the
// CLB stays: the other one may still get there. Once it does not name the CLB any more, the CLB goes, also after a restart in between.
func TestUnnamedCLBOfAGroupGoes(t *testing.T) {
	t.Parallel()
	for who, hopes := range hopefuls() {
		for end, unname := range unnamings() {
			for when, then := range knownOrNot() {
				t.Run(strings.Join([]string{who, end, when}, ", "), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w, id := hopefulWorld(t, hopes)
						w.newEvents()
						w.goes("shop")
						if events := strings.Join(w.newEvents(), "\n"); strings.Count(events, problem.ReasonLoadBalancerKept) != 1 ||
							!strings.Contains(events, "default/web") {
							t.Errorf("events %s, want one %s that names the other Service", events, problem.ReasonLoadBalancerKept)
						}
						if kept := Product.KeptFor(w.get("web")); !slices.Equal(kept, []string{id}) {
							t.Errorf("%v is kept for web, want %s", kept, id)
						}
						then(w)
						w.awhile("web", 31*time.Minute)
						if _, there := w.state()[edgeCLB]; !there || len(w.orphans()) > 0 {
							t.Fatalf("the CLB is there: %v; orphans %v", there, w.orphans())
						}
						then(w)
						unname(w)
						w.awhile("web", 3*time.Minute)
						w.edgeIsGone()
						if svc := w.get("web"); len(Product.KeptFor(svc)) > 0 || strings.Contains(fmt.Sprint(svc.Status.Conditions), driver.ConditionsKept) {
							t.Errorf("conditions %v", svc.Status.Conditions)
						}
						w.calls()
						w.awhile("web", 5*time.Minute)
						if writes := writesOf(w.calls()); len(writes) > 0 {
							t.Errorf("further writes %v", writes)
						}
					})
				})
			}
		}
	}
}

// TestUnnamedByTheLast: the last Service of a group has gone, and so has one that was on the CLB by its ID. The CLB goes with the next one
// that names it and may not use it.
func TestUnnamedByTheLast(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				w.putAll(grouped("shop", "edge", 81))
				id := w.get("shop").Labels[driver.LabelLoadBalancerID]
				w.put(born(reusing("web", id, "true", 80), 9))
				w.awhile("web", time.Minute)
				w.goes("shop")
				w.awhile("web", time.Minute)
				w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
				w.restart()
				w.awhile("web", time.Minute)
				w.put(born(reusing("blog", id, "true", 82), 9))
				w.awhile("blog", time.Minute)
				then(w)
				w.fillCache([]corev1.Service{*w.get("web"), *w.get("blog")})
				w.goes("web")
				if _, there := w.state()[edgeCLB]; !there {
					t.Fatal("the CLB is gone")
				}
				w.change("blog", unnamed)
				w.awhile("blog", 3*time.Minute)
				w.edgeIsGone()
			})
		})
	}
}

// TestUnnamedForOneThatIsMissing: a Service that names another CLB, which does not exist, does not keep the first one.
func TestUnnamedForOneThatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := hopefulWorld(t, hopefuls()["new"])
		w.goes("shop")
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, "lb-none") })
		w.awhile("web", 3*time.Minute)
		w.edgeIsGone()
	})
}

// TestKeptForAPausedService: a CLB stays for a paused Service that names it. The Service may go at any time.
func TestKeptForAPausedService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, id := hopefulWorld(t, hopefuls()["without a pass"])
		w.change("web", func(svc *corev1.Service) { svc.Annotations[driver.AnnotationPaused] = "true" })
		w.goes("shop")
		if svc := w.get("web"); len(svc.Finalizers) > 0 || !slices.Equal(Product.KeptFor(svc), []string{id}) {
			t.Errorf("finalizers %v; kept %v", svc.Finalizers, Product.KeptFor(svc))
		}
		w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, driver.AnnotationPaused) })
		w.awhile("web", time.Minute)
		w.goes("web")
		w.edgeIsGone()
	})
}

// TestUnnamedJoinsTheGroup: a CLB stays for a Service that names it by its ID, and then asks for its group. It gets that CLB, whatever
// fails meanwhile.
func TestUnnamedJoinsTheGroup(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"Throttling", "InternalError", "Forbidden.RAM", ""} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, id := hopefulWorld(t, hopefuls()["new"])
				w.goes("shop")
				w.change("web", func(svc *corev1.Service) {
					delete(svc.Annotations, key(annotation.LoadBalancerID))
					annotate(svc, annotation.Group, "edge")
				})
				if code == "" { // more ports than a CLB has listeners
					w.change("web", func(svc *corev1.Service) {
						for i := range int32(2 * service.MaxPorts) {
							svc.Spec.Ports = append(svc.Spec.Ports, testPort(1000+i, corev1.ProtocolTCP))
						}
					})
					w.awhile("web", 5*time.Minute)
					w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
				}
				for range 20 {
					if code != "" {
						w.fault(map[string]any{"action": "DescribeLoadBalancers", "code": code, "status": 400, "times": 1})
					}
					w.awhile("web", 3*time.Second)
				}
				w.awhile("web", 10*time.Minute)
				if on := w.get("web").Labels[driver.LabelLoadBalancerID]; on != id {
					t.Errorf("web is on %s, want %s; %v", on, id, w.ownersOf())
				}
			})
		})
	}
}

// TestUnnamedCannotBeDeleted: the cloud does not let a CLB go that stays in vain. One event says so, few calls are made, and it goes once
// the cloud lets it.
func TestUnnamedCannotBeDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := hopefulWorld(t, hopefuls()["new"])
		w.goes("shop")
		w.change("web", unnamed)
		w.fault(map[string]any{"action": "DeleteLoadBalancer", "code": "Forbidden.RAM", "status": 403, "times": 5})
		w.newEvents()
		w.awhile("web", time.Minute)
		w.calls()
		w.awhile("web", 29*time.Minute)
		if failed := strings.Count(strings.Join(w.newEvents(), "\n"), problem.ReasonCleanFailed); failed != 1 {
			t.Errorf("%d events %s, want one", failed, problem.ReasonCleanFailed)
		}
		if calls := w.calls(); len(calls) > 60 {
			t.Errorf("%d calls in 29 minutes: %v", len(calls), calls)
		}
		w.awhile("web", 3*time.Hour)
		w.edgeIsGone()
	})
}

// TestUnnamedMakesRoom: the account has no room for a CLB of the Service's own while one stays for it in vain.
func TestUnnamedMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := hopefulWorld(t, hopefuls()["new"])
		w.goes("shop")
		w.change("web", unnamed)
		w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "ORDER.QUOTA_EXCEEDED", "status": 400, "times": 1000})
		w.awhile("web", 10*time.Minute)
		if left := w.state(); len(left) > 0 {
			t.Errorf("CLBs %v stay", w.ownersOf())
		}
	})
}
