package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

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

// TestUnnamedCLBOfAGroupIsUsed: a CLB that was kept for a Service is left alone once that does not name it any more, if another Service
// uses or names it. It goes with the last one.
func TestUnnamedCLBOfAGroupIsUsed(t *testing.T) {
	t.Parallel()
	later := map[string]func(w *world, id string){
		"by a new Service of the group": func(w *world, _ string) { w.putAll(grouped("blog", "edge", 82)) },
		"by another one that names it": func(w *world, id string) {
			w.put(born(reusing("blog", id, "true", 82), 9))
			w.awhile("blog", time.Second)
		},
	}
	for how, comes := range later {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, early %v", how, early), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w, id := hopefulWorld(t, hopefuls()["new"])
					if early {
						comes(w, id)
					}
					w.goes("shop")
					if !early {
						comes(w, id)
					}
					w.change("web", unnamed)
					w.awhile("web", 3*time.Minute)
					if _, there := w.state()[edgeCLB]; !there {
						t.Fatal("the CLB is gone")
					}
					w.goes("blog")
					w.awhile("web", time.Minute)
					w.edgeIsGone()
				})
			})
		}
	}
}

// TestNotingWhatIsKeptFails: the last Service of a group does not go before the other one holds that the CLB stays for it.
func TestNotingWhatIsKeptFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, id := hopefulWorld(t, hopefuls()["without a pass"])
		failing := true
		w.kube.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch, ok := action.(clienttesting.PatchAction)
			return ok && failing && patch.GetName() == "web", nil, errDead
		})
		w.change("shop", deleteService)
		w.passes("shop", 3)
		if len(w.get("shop").Finalizers) == 0 || len(w.ownersOf()[edgeCLB]) == 0 {
			t.Fatalf("finalizers %v, listeners %v", w.get("shop").Finalizers, w.ownersOf())
		}
		failing = false
		w.live("shop", 10*time.Minute)
		if kept, held := Product.KeptFor(w.get("web")), w.get("shop").Finalizers; !slices.Equal(kept, []string{id}) || len(held) > 0 {
			t.Errorf("kept %v, finalizers %v", kept, held)
		}
	})
}

// TestPreservedOnCLBOfAGroupByID: a CLB of a group was kept for a Service that is on it by its ID. The Service keeps its listeners there
// when it goes, as its annotation says, also if a process deletes it that has made no pass over it.
func TestPreservedOnCLBOfAGroupByID(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				w.putAll(grouped("shop", "edge", 81))
				web := reusing("web", w.get("shop").Labels[driver.LabelLoadBalancerID], "true", 80)
				annotate(web, annotation.PreserveOnDelete, "true")
				w.put(born(web, 9))
				w.awhile("web", time.Minute)
				w.goes("shop")
				w.putAll(grouped("blog", "edge", 82))
				then(w)
				w.goes("web")
				wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:82 blog"}})
			})
		})
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

// TestUnnamedIsNotPreserved: a Service that keeps its CLB when it goes, as its annotation says, does not keep one that it has never been
// on.
func TestUnnamedIsNotPreserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := hopefulWorld(t, hopefuls()["new"])
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.PreserveOnDelete, "true") })
		w.goes("shop")
		w.change("web", deleteService)
		w.awhile("web", 3*time.Minute)
		if left := w.ownersOf(); len(left) > 0 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("CLBs %v stay, finalizers %v", left, w.get("web").Finalizers)
		}
	})
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

// TestTwoKept: two CLBs are kept for a Service that has named one after the other. Each note outlives the other one, also where it is
// written by a pass that has not seen it.
func TestTwoKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := hopefulWorld(t, hopefuls()["new"])
		w.putAll(grouped("cart", "second", 83))
		w.goes("shop")
		second := w.get("cart").Labels[driver.LabelLoadBalancerID]
		w.change("web", unnamed)
		stale := w.get("web")
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, second) })
		w.goes("cart")
		for range 10 {
			_, _ = w.Reconcile(t.Context(), stale)
			time.Sleep(10 * time.Second)
		}
		if kept := Product.KeptFor(w.get("web")); !slices.Equal(kept, []string{second}) {
			t.Errorf("kept %v, want %s", kept, second)
		}
		w.change("web", unnamed)
		w.awhile("web", 3*time.Minute)
		if left := w.ownersOf(); len(left) != 1 {
			t.Errorf("CLBs %v stay", left)
		}
	})
}

// TestKeptOnTheWayOut: a CLB of a group was kept for a Service that is on it by its ID, and that moves before another pass. Clients go on
// to use the old address for a while.
func TestKeptOnTheWayOut(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.moveGrace = time.Minute
				w.restart()
				threeNodes(w)
				w.putAll(grouped("shop", "edge", 81))
				w.put(born(reusing("web", w.get("shop").Labels[driver.LabelLoadBalancerID], "true", 80), 9))
				w.awhile("web", time.Minute)
				w.goes("shop")
				w.change("web", func(svc *corev1.Service) {
					delete(svc.Annotations, key(annotation.LoadBalancerID))
					annotate(svc, annotation.Group, "third")
				})
				then(w)
				w.awhile("web", 50*time.Second)
				if left := w.ownersOf(); !slices.Equal(left[edgeCLB], []string{"tcp:80 web"}) ||
					!slices.Equal(left["k8s-group-default-third"], []string{"tcp:80 web"}) {
					t.Errorf("within the grace: %v", left)
				}
				w.awhile("web", 3*time.Minute)
				wantOwners(t, w, map[string][]string{"k8s-group-default-third": {"tcp:80 web"}})
			})
		})
	}
}

// TestUnnamedWithALabel: the label of a Service says that it is on a CLB that stays for it, and it has never been there.
func TestUnnamedWithALabel(t *testing.T) {
	t.Parallel()
	for end, unname := range unnamings() {
		for when, then := range knownOrNot() {
			t.Run(end+", "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w, _ := hopefulWorld(t, func(w *world, id string) {
						web := born(reusing("web", id, "true", 80), 9)
						web.Labels = map[string]string{driver.LabelLoadBalancerID: id}
						w.put(web)
						w.awhile("web", time.Second)
					})
					w.goes("shop")
					then(w)
					unname(w)
					w.awhile("web", 15*time.Minute)
					w.edgeIsGone()
				})
			})
		}
	}
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

// TestKeptDuringRemoval: the last Service of a group goes while a pass over one that names the CLB removes that from the cloud, too. The
// pass has not seen that the CLB stays.
func TestKeptDuringRemoval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := hopefulWorld(t, hopefuls()["new"])
		w.kube.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch, ok := action.(clienttesting.PatchAction)
			if !ok || !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"1"`) {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(corev1.Resource("services"), patch.GetName(), errDead)
		})
		w.change("web", func(svc *corev1.Service) { svc.ResourceVersion = "1" })
		w.change("web", deleteService)
		stale := w.get("web")
		w.goes("shop")
		w.change("web", func(svc *corev1.Service) { svc.ResourceVersion = "2" })
		for range 3 {
			_, _ = w.Reconcile(t.Context(), stale)
			time.Sleep(10 * time.Second)
		}
		if len(w.get("web").Finalizers) == 0 {
			t.Error("the Service was released by a pass that did not see what stays for it")
		}
		w.awhile("web", 3*time.Minute)
		if left := w.ownersOf(); len(left) > 0 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("CLBs %v stay, finalizers %v", left, w.get("web").Finalizers)
		}
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
