package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

func sourceRanges(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }

// steps makes passes over Services for a time, each in turn, whatever comes of them.
func (w *world) steps(rounds int, pause time.Duration, names ...string) {
	w.t.Helper()
	for range rounds {
		for _, name := range names {
			w.fillServices()
			if svc, err := w.factory.Core().V1().Services().Lister().Services(testkit.Namespace).Get(name); err == nil {
				_, _ = w.Reconcile(w.t.Context(), svc)
			}
		}
		w.later(pause)
	}
}

// TestPausedServiceTakesNoPort: an older Service that is paused takes no port from one that serves.
func TestPausedServiceTakesNoPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("shop", "edge", 3, testkit.TCP(80)), newService("old", born(1), testkit.TCP(80)))
		w.change("old", with(annotation.Group, "edge"), testkit.Annotation(driver.AnnotationPaused, "true"))
		w.steps(8, 20*settle, "old", "shop")
		if owners := w.ownersOf()[edgeNLB]; !slices.Contains(owners, "tcp:80 shop") {
			t.Errorf("shop has lost its listener to a Service that is paused elsewhere: %v; events:\n%s", w.ownersOf(),
				strings.Join(w.newEvents(), "\n"))
		}
	})
}

// TestPausedServiceMovesNowhere: a paused Service that asks for a group keeps the NLB of its own, which serves it.
func TestPausedServiceMovesNowhere(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]string{"into a group": "edge", "out of a group": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				change, before := with(annotation.Group, group), newService("web", testkit.TCP(81))
				if group == "" {
					change, before = without(annotation.Group), grouped("web", "edge", 1, testkit.TCP(81))
				}
				w.groupWorld(grouped("shop", "edge", 3, testkit.TCP(80)), before)
				was := w.hostname("web")
				w.change("web", change, testkit.Annotation(driver.AnnotationPaused, "true"))
				w.steps(8, 20*settle, "web", "shop")
				if calls := writes(w.calls()); len(calls) > 0 || w.hostname("web") != was || !w.answers("web", was) {
					t.Errorf("a paused Service wrote %v; its NLB %s serves it: %v; the listeners: %v", calls, was, w.answers("web", was), w.ownersOf())
				}
			})
		})
	}
}

// TestPublicIPv6TakesNoPrivateService: an NLB that has private IPv4 addresses and public IPv6 ones is public.
func TestPublicIPv6TakesNoPrivateService(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){"IPv4": with(annotation.AddressType, "intranet"),
		"IPv6": with(annotation.IPv6AddressType, "intranet")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkit.TCP(80), with(annotation.AddressType, "intranet"),
					with(annotation.IPVersion, "DualStack"), with(annotation.IPv6AddressType, "internet")))
				w.put(grouped("shop", "edge", 2, testkit.TCP(81), with(annotation.IPVersion, "DualStack"), change))
				w.together("shop", "web")
				lb := w.only(edgeNLB)
				if owners := w.ownersOf()[edgeNLB]; slices.Contains(owners, "tcp:81 shop") &&
					strings.EqualFold(lb.IPv6AddressType, alicloud.NLBInternet) {
					t.Errorf("shop asks for a private address, and the NLB has public IPv6 addresses: %v", owners)
				}
			})
		})
	}
}

// TestUnreadGroup: whatever read fails, or lacks everything, while Services of a group are there: nothing is removed or created.
func TestUnreadGroup(t *testing.T) {
	t.Parallel()
	const noListeners = `{"action":"ListListeners","times":%d,"body":"{\"RequestId\":\"1\",\"Listeners\":[],\"TotalCount\":0}"}`
	for name, faults := range map[string][]string{
		"no listeners": {fmt.Sprintf(noListeners, 2)},
		"no NLBs":      {fmt.Sprintf(noBalancers, 4)},
		"neither":      {fmt.Sprintf(noBalancers, 4), fmt.Sprintf(noListeners, 2)},
		"no NLBs, not found": {fmt.Sprintf(noBalancers, 4),
			`{"action":"GetLoadBalancerAttribute","times":1,"code":"ResourceNotFound.loadBalancer","status":404}`},
		"no NLBs, read refused": {fmt.Sprintf(noBalancers, 4),
			`{"action":"GetLoadBalancerAttribute","times":2,"code":"ServiceUnavailable","status":503}`},
		"forbidden":                {`{"action":"ListLoadBalancers","times":3,"code":"Forbidden.RAM","status":403}`},
		"listeners forbidden":      {`{"action":"ListListeners","times":3,"code":"Forbidden.RAM","status":403}`},
		"server groups empty once": {`{"action":"ListServerGroups","times":2,"body":"{\"RequestId\":\"1\",\"ServerGroups\":[],\"TotalCount\":0}"}`},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restart), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("web", "edge", 1, testkit.TCP(80)), grouped("shop", "edge", 2, testkit.TCP(81)))
					for _, fault := range faults {
						w.account.Fault(fault)
					}
					if restart {
						w.restart()
					} else {
						for _, name := range []string{"web", "shop"} {
							testkit.Check(t, w.Invalidate(t.Context(), w.get(name), "drift"))
						}
					}
					w.steps(15, 2*time.Second, "shop", "web")
					w.account.ClearFaults()
					w.steps(15, 2*time.Second, "shop", "web")
					refused := func(call string) bool { return call == "CreateListener=DuplicatedParam.listener" } // as of a Service without a group
					if calls := slices.DeleteFunc(writes(w.calls()), refused); len(calls) > 0 {
						t.Errorf("writes %v", calls)
					}
					w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
				})
			})
		}
	}
}

// TestUnreadWhileLeaving: a search that lacks the listeners of others, or the NLB, while a Service of a group is deleted.
func TestUnreadWhileLeaving(t *testing.T) {
	t.Parallel()
	const noListeners = `{"action":"ListListeners","times":%d,"body":"{\"RequestId\":\"1\",\"Listeners\":[],\"TotalCount\":0}"}`
	for name, faults := range map[string][]string{
		"no listeners": {fmt.Sprintf(noListeners, 1)},
		"no NLBs":      {fmt.Sprintf(noBalancers, 2)},
		"both":         {fmt.Sprintf(noBalancers, 2), fmt.Sprintf(noListeners, 1)},
	} {
		for _, foreign := range []bool{false, true} {
			t.Run(fmt.Sprint(name, foreign), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(_ *testing.T, w *world) {
					want := map[string][]string{edgeNLB: {"tcp:81 shop"}}
					w.groupWorld(grouped("web", "edge", 1, testkit.TCP(80)), grouped("shop", "edge", 2, testkit.TCP(81)))
					if foreign { // shop is one of another cluster's: nothing here knows of it
						w.vanish("shop")
					}
					w.restart()
					w.remove("web")
					for _, fault := range faults {
						w.account.Fault(fault)
					}
					w.steps(30, 2*time.Second, "web")
					w.account.ClearFaults() // of a search that nobody needed
					w.wantOwners(want)
				})
			})
		}
	}
}

// TestGoneNLBOfAGroup: an NLB of a group that somebody deletes is made once again, and both are on it.
func TestGoneNLBOfAGroup(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint(restart), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkit.TCP(80), with(annotation.DeleteProtection, "off")),
					grouped("shop", "edge", 2, testkit.TCP(81)))
				id := w.only(edgeNLB).ID
				_, err := w.account.Client.DeleteNLB(t.Context(), id)
				testkit.Check(t, err)
				w.later(30 * settle)
				if restart {
					w.restart()
				} else {
					for _, name := range []string{"web", "shop"} {
						testkit.Check(t, w.Invalidate(t.Context(), w.get(name), "drift"))
					}
				}
				w.steps(60, 5*time.Second, "shop", "web")
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
				creations := slices.DeleteFunc(w.calls(), func(c string) bool { return !strings.HasPrefix(c, "CreateLoadBalancer") })
				if len(creations) != 1 {
					t.Errorf("creations %v", creations)
				}
				w.silent("web", "shop")
				w.leavesNothing("web", "shop")
			})
		})
	}
}
