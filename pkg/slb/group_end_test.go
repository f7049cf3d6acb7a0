package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestLastOneOfAGroup: the CLB stays while anybody else has, or is to have, something on it.
func TestLastOneOfAGroup(t *testing.T) {
	t.Parallel()
	t.Run("listeners by hand", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80))
		w.makeListener(w.onlyCLB(), 9000, "by hand")
		w.change("web", deleteService)
		w.mustPass("web")
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:9000 "}})
		if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerKept) {
			t.Errorf("events %s, want %s", events, problem.ReasonLoadBalancerKept)
		}
	})
	t.Run("a Service that begins", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80))
		w.put(born(grouped("shop", "edge", 80), 9))
		w.mustPass("shop") // has the finalizer, and no port
		w.change("web", deleteService)
		w.mustPass("web")
		w.vanish("web")
		w.drift("shop")
		w.mustPass("shop")
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 shop"}})
	})
	t.Run("an answer without listeners", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
		w.vanish("shop") // somebody removed its finalizer, and its listener stays
		w.restart()
		w.change("web", deleteService)
		w.fillGroups()
		w.transport.next = emptied{w.transport.next, "DescribeLoadBalancerListeners"}
		if _, err := w.Reconcile(t.Context(), w.get("web")); err != nil {
			t.Log(err)
		}
		w.transport.next = w.emulator.Transport()
		for range 3 {
			w.mustPass("web")
		}
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 shop"}})
	})
	t.Run("an answer without listeners, while another Service goes", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80))
		w.put(reusing("guest", w.onlyCLB(), "true", 81))
		w.mustPass("guest")
		w.put(born(grouped("shop", "edge", 80), 9))
		w.mustPass("shop") // has the finalizer, and no port
		w.drift("web")
		w.change("web", deleteService)
		at := w.meanwhile("DescribeLoadBalancerListeners", func() {
			w.vanish("shop")
			w.fillGroups()
		})
		w.transport.next = emptied{at, "DescribeLoadBalancerListeners"}
		if _, err := w.Reconcile(t.Context(), w.get("web")); err != nil {
			t.Log(err)
		}
		if !at.End() {
			t.Fatal("web reads no listeners")
		}
		w.transport.next = w.emulator.Transport()
		w.passes("web", 3)
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 guest"}})
	})
}

// TestGroupGoesBack: the official CCM takes over what Services of a group have once they name the CLB, without a write but its tag, and
// this program takes it back.
func TestGroupGoesBack(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
	id := w.onlyCLB()
	naming := func(svc *corev1.Service) {
		annotate(svc, annotation.LoadBalancerID, id)
		annotate(svc, annotation.ForceOverrideListeners, "true")
	}
	for _, name := range []string{"web", "shop"} {
		svc := w.get(name)
		naming(svc)
		writes := slices.DeleteFunc(w.official(svc, testCluster).wouldWrite(), func(text string) bool {
			return strings.Contains(text, mark.TagReused)
		})
		if len(writes) > 0 {
			t.Errorf("the official CCM would write for %s: %v", name, writes)
		}
	}
	w.change("web", naming)
	for _, begin := range []func(){func() {}, w.restart} {
		begin()
		w.mustPass("web")
		w.mustPass("shop")
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
	}
	w.change("web", func(svc *corev1.Service) {
		delete(svc.Annotations, key(annotation.LoadBalancerID))
		delete(svc.Annotations, key(annotation.ForceOverrideListeners))
	})
	w.calls()
	w.mustPass("web")
	w.mustPass("shop")
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
}

// TestTakenOverCLBOfAGroupIsKept: a CLB from which somebody has removed the tag of the group stays, without what the last Service has on
// it.
func TestTakenOverCLBOfAGroupIsKept(t *testing.T) {
	t.Parallel()
	for why, begin := range knownOrNot() {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("web", "edge", 80))
			id := w.onlyCLB()
			w.untagged(id)
			begin(w)
			w.change("web", deleteService)
			w.mustPass("web")
			wantOwners(t, w, map[string][]string{edgeCLB: {}})
			w.wantKept(id)
		})
	}
}

// TestProtectionOfAGroup: the last Service of a group deletes the CLB although that is protected, by an annotation or by hand. Where that
// goes wrong in between, and another Service joins, the CLB is protected again.
func TestProtectionOfAGroup(t *testing.T) {
	t.Parallel()
	protected := func(t *testing.T, value string) *world {
		t.Helper()
		svc := grouped("web", "edge", 80)
		if value != "" {
			annotate(svc, annotation.DeleteProtection, value)
		}
		w := groupWorld(t, svc)
		w.must(w.api.SetDeleteProtection(t.Context(), w.onlyCLB(), "on"))
		return w
	}
	for _, value := range []string{"", "on", "off"} {
		for what, change := range map[string]func(*corev1.Service){
			"deleted": deleteService, "type": func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP },
			"renamed": func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") },
		} {
			t.Run(fmt.Sprintf("%q %s", value, what), func(t *testing.T) {
				t.Parallel()
				w := protected(t, value)
				w.change("web", change)
				for range 3 {
					w.mustPass("web")
				}
				if _, left := w.state()[edgeCLB]; left {
					t.Error("the CLB of the group is left")
				}
			})
		}
		for _, again := range []string{"web", "shop"} {
			t.Run(fmt.Sprintf("%q, deletion fails, %s joins", value, again), func(t *testing.T) {
				t.Parallel()
				w := protected(t, value)
				w.fault(map[string]any{"action": "DeleteLoadBalancer", "code": "OperationDenied", "status": 400})
				w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
				if err := w.pass("web"); err == nil {
					t.Error("the deletion succeeds")
				}
				w.clearFaults()
				if again == "web" {
					w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
				} else {
					w.put(born(grouped("shop", "edge", 81), 5))
				}
				w.mustPass(again)
				want := "on"
				if value == "off" && again == "web" {
					want = "off"
				}
				if lb := w.state()[edgeCLB]; lb.DeleteProtection != want || len(lb.Listeners) == 0 {
					t.Errorf("protection %q, listeners %v; want %q", lb.DeleteProtection, lb.Listeners, want)
				}
				w.must(w.api.SetDeleteProtection(t.Context(), w.onlyCLB(), "off"))
				w.drift(again)
				w.mustPass(again)
				if lb := w.state()[edgeCLB]; value == "" && lb.DeleteProtection != "off" {
					t.Error("what somebody has switched off later does not stay so")
				}
			})
		}
	}
}

// TestCLBOfAGroupStaysForOthers: the last Service of a group goes while another one that names the CLB by its ID has a listener there. An
// event says that the CLB stays. The manager deletes no CLB that a Service names: it stays when that one goes, too.
func TestCLBOfAGroupStaysForOthers(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*world){
		"deleted": func(w *world) { w.change("web", deleteService) },
		"moves": func(w *world) {
			w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) })
		},
	}
	for end, last := range ends {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", end, restarted), func(t *testing.T) {
				t.Parallel()
				w := groupWorld(t, grouped("web", "edge", 80))
				w.put(reusing("guest", w.onlyCLB(), "true", 81))
				w.mustPass("guest")
				last(w)
				for range 3 {
					_ = w.pass("web")
				}
				if events := strings.Join(w.newEvents(), "\n"); strings.Count(events, problem.ReasonLoadBalancerKept) != 1 ||
					!strings.Contains(events, "it has listeners of others") {
					t.Errorf("events %s, want one %s that says why", events, problem.ReasonLoadBalancerKept)
				}
				if end == "deleted" {
					w.vanish("web")
				}
				if restarted {
					w.restart()
				}
				w.mustPass("guest")
				if left := w.ownersOf()[edgeCLB]; !slices.Equal(left, []string{"tcp:81 guest"}) {
					t.Fatalf("listeners %v, and a Service uses the CLB", left)
				}
				w.change("guest", deleteService)
				for range 3 {
					_ = w.pass("guest")
				}
				if left, there := w.ownersOf()[edgeCLB]; !there || len(left)+len(w.get("guest").Finalizers) > 0 {
					t.Errorf("load balancers %v, finalizers %v", w.ownersOf(), w.get("guest").Finalizers)
				}
			})
		}
	}
}

// TestGuestOfAGroupLeavesTheCLB: a Service that names the CLB of a group by its ID goes. The CLB stays while somebody else uses it, has a
// listener there, or if it is another cluster's.
func TestGuestOfAGroupLeavesTheCLB(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world, id string){
		"a Service of the group": func(w *world, _ string) { w.put(born(grouped("shop", "edge", 80), 9)); w.mustPass("shop") },
		"another guest":          func(w *world, id string) { w.put(reusing("shop", id, "true", 82)); w.mustPass("shop") },
		"a listener by hand":     func(w *world, id string) { w.makeListener(id, 9000, "by hand") },
		"of another cluster": func(w *world, id string) {
			tag := alicloud.Tag{Key: mark.TagGroup, Value: "c2/default/edge"}
			if err := w.api.TagLoadBalancer(w.t.Context(), id, []alicloud.Tag{tag}); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("web", "edge", 80))
			id := w.onlyCLB()
			w.put(reusing("guest", id, "true", 81))
			w.mustPass("guest")
			w.change("web", deleteService)
			w.mustPass("web")
			w.vanish("web")
			prepare(w, id)
			w.drift("guest")
			w.mustPass("guest")
			w.change("guest", deleteService)
			for range 3 {
				_ = w.pass("guest")
			}
			left, there := w.ownersOf()[edgeCLB]
			if !there || slices.Contains(left, "tcp:81 guest") || len(w.get("guest").Finalizers) > 0 {
				t.Errorf("load balancers %v, finalizers %v", w.ownersOf(), w.get("guest").Finalizers)
			}
		})
	}
}
