package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// moveToNewCLB is a change of the Service web for which the cloud has to create a CLB.
type moveToNewCLB struct {
	name   string
	before func(*world) *corev1.Service
	change func(*corev1.Service)
	// owners are the listeners while the creation is refused, after those once it is not.
	owners, after map[string][]string
}

func movesToNewCLBs() []moveToNewCLB {
	ungroup := func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) }
	to := func(group string) func(*corev1.Service) {
		return func(svc *corev1.Service) { annotate(svc, annotation.Group, group) }
	}
	inEdge := func(*world) *corev1.Service { return grouped("web", "edge", 80) }
	both := map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}}
	shop := []string{"tcp:81 shop"}
	web := []string{"tcp:80 web"}
	return []moveToNewCLB{
		{
			"into a group", func(*world) *corev1.Service { return testService("web", 80) }, to("other"),
			map[string][]string{edgeCLB: shop, "a0f5e8a1cweb": web}, map[string][]string{edgeCLB: shop, "k8s-group-default-other": web},
		},
		{"out of a group", inEdge, ungroup, both, map[string][]string{edgeCLB: shop, "a0f5e8a1cweb": web}},
		{"between groups", inEdge, to("other"), both, map[string][]string{edgeCLB: shop, "k8s-group-default-other": web}},
		{
			"from an existing CLB", func(w *world) *corev1.Service { return reusing("web", w.makeCLB().ID, "true", 80) },
			func(svc *corev1.Service) {
				delete(svc.Annotations, key(annotation.LoadBalancerID))
				delete(svc.Annotations, key(annotation.ForceOverrideListeners))
				annotate(svc, annotation.Group, "other")
			},
			map[string][]string{edgeCLB: shop, "mine": web}, map[string][]string{edgeCLB: shop, "mine": {}, "k8s-group-default-other": web},
		},
		{
			"to the next CLB of its group", inEdge, func(svc *corev1.Service) {
				overflowing(svc)
				svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
			}, both, map[string][]string{edgeCLB: shop, edgeCLB + "+": {"tcp:80 web", "tcp:81 web"}},
		},
	}
}

// refusalsOfCreation are why the cloud may refuse to create a CLB.
func refusalsOfCreation() map[string]map[string]any {
	return map[string]map[string]any{
		"quota":      {"action": "CreateLoadBalancer", "code": "ORDER.QUOTA_EXCEEDED", "status": 400, "times": 100},
		"permission": {"action": "CreateLoadBalancer", "code": "Forbidden.RAM", "status": 403, "times": 100},
		"attributes": {"action": "CreateLoadBalancer", "code": "OperationDenied.PayByCLCU", "status": 400, "times": 100},
	}
}

// live makes the passes over a Service that are due within a time.
func (w *world) live(name string, d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); ; {
		w.fillGroups()
		wait, err := w.Reconcile(w.t.Context(), w.get(name))
		if err != nil {
			w.t.Fatalf("pass over %s: %v", name, err)
		}
		if wait == 0 || time.Now().Add(wait).After(end) {
			time.Sleep(time.Until(end))
			return
		}
		time.Sleep(wait)
	}
}

// refusedMove makes a world with the Services web and shop in which web has begun a move that the cloud refuses. It returns web as it was
// before.
func refusedMove(t *testing.T, move moveToNewCLB, refusal map[string]any) (w *world, before *corev1.Service) {
	t.Helper()
	w = newWorld(t)
	threeNodes(w)
	w.put(born(grouped("shop", "edge", 81), 0))
	w.mustPass("shop")
	w.put(born(move.before(w), 1))
	for range 2 {
		w.mustPass("web")
		w.mustPass("shop")
	}
	w.newEvents()
	before = w.get("web")
	w.fault(refusal)
	w.change("web", move.change)
	w.calls()
	w.live("web", time.Second)
	return w, before
}

func creationsIn(calls []string) int {
	return len(slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !strings.HasPrefix(call, "CreateLoadBalancer=") }))
}

// TestRefusedMoveStays: while the cloud refuses the CLB that a Service is to move to, the old place is kept up to date as before, one
// Warning says so, few calls are made, and the Service moves once the creation succeeds.
func TestRefusedMoveStays(t *testing.T) {
	t.Parallel()
	for _, move := range movesToNewCLBs() {
		for why, refusal := range refusalsOfCreation() {
			t.Run(move.name+" "+why, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w, _ := refusedMove(t, move, refusal)
					address := w.address("web")
					staysUpToDate(t, w, move, address)
					reportsRefusal(t, w, 1)

					w.calls()
					w.live("web", 32*time.Minute)
					if calls := w.calls(); creationsIn(calls) > 6 || len(calls) > 32*6 {
						t.Errorf("32 minutes take %d creations and %d calls: %v", creationsIn(calls), len(calls), calls)
					}
					reportsRefusal(t, w, 0)
					staysUpToDate(t, w, move, address)

					w.clearFaults()
					w.live("web", groups.MovePause.Longest+2*time.Minute)
					w.live("shop", time.Minute)
					wantOwners(t, w, move.after)
					if now := w.address("web"); now == address || !w.answers("web", now) {
						t.Errorf("the status shows %s, want the new address", now)
					}
					if condition := w.synced("web"); condition.Status != metav1.ConditionTrue {
						t.Errorf("condition %+v after the move", condition)
					}
					if found := w.orphans(); len(found) > 0 {
						t.Errorf("orphans: %v", found)
					}
					w.leavesNothing("web", "shop")
				})
			})
		}
	}
}

// staysUpToDate checks that the nodes which join and leave reach the CLB on which the Service stays.
func staysUpToDate(t *testing.T, w *world, move moveToNewCLB, address string) {
	t.Helper()
	wantOwners(t, w, move.owners)
	w.addNode("d")
	w.deleteNode("a")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-b", "i-c", "i-d"}, w.backendsOf("web")["30080"]); diff != "" {
		t.Errorf("backend servers after a node joined and another left (-want +got):\n%s", diff)
	}
	w.addNode("a")
	w.deleteNode("d")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-a", "i-b", "i-c"}, w.backendsOf("web")["30080"]); diff != "" {
		t.Errorf("backend servers as before (-want +got):\n%s", diff)
	}
	if now := w.address("web"); now != address || !w.answers("web", now) {
		t.Errorf("the status shows %s, want %s, which serves", now, address)
	}
}

// reportsRefusal checks that so many new Warnings, and the condition, say why the Service stays.
func reportsRefusal(t *testing.T, w *world, events int) {
	t.Helper()
	condition := w.synced("web")
	for _, text := range []string{"the Service stays on CLB " + w.get("web").Labels[driver.LabelLoadBalancerID], "CreateLoadBalancer: ",
		"restore the annotation"} {
		if !strings.Contains(condition.Message, text) && condition.Reason == problem.ReasonMoveRefused {
			t.Errorf("condition %q lacks %q", condition.Message, text)
		}
	}
	if condition.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v, want %s", condition, metav1.ConditionFalse)
	}
	said := w.newEvents()
	refused := slices.DeleteFunc(slices.Clone(said), func(event string) bool {
		return !strings.Contains(event, "Warning "+problem.ReasonMoveRefused)
	})
	if len(refused) != events || strings.Contains(strings.Join(said, "\n"), problem.ReasonSyncFailed) {
		t.Errorf("events %v, want %d of %s", said, events, problem.ReasonMoveRefused)
	}
}

// staysRefused reports whether a Service stays because the cloud refused the CLB that it is to move to.
func (w *world) staysRefused(name string) bool {
	condition := meta.FindStatusCondition(w.get(name).Status.Conditions, service.ConditionSynced)
	return condition != nil && condition.Reason == problem.ReasonMoveRefused
}

// TestStayingAfterARestart: a new process makes one more attempt, and then keeps the old place up to date.
func TestStayingAfterARestart(t *testing.T) {
	t.Parallel()
	for _, move := range movesToNewCLBs() {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _ := refusedMove(t, move, refusalsOfCreation()["quota"])
				address := w.address("web")
				w.restart()
				w.calls()
				w.live("web", 50*time.Second)
				if calls := w.calls(); creationsIn(calls) > 1 {
					t.Errorf("after a restart: %v", calls)
				}
				staysUpToDate(t, w, move, address)
				w.leavesNothing("web", "shop")
			})
		})
	}
}

// TestStayingEnds: a Service that stays has no Warning any more once its annotation asks for where it is, and moves at once when an
// annotation that the cloud refused has changed.
func TestStayingEnds(t *testing.T) {
	t.Parallel()
	for _, move := range movesToNewCLBs() {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, before := refusedMove(t, move, refusalsOfCreation()["attributes"])
				w.change("web", func(svc *corev1.Service) { svc.Annotations, svc.Spec.Ports = before.Annotations, before.Spec.Ports })
				w.calls()
				w.live("web", time.Second)
				if condition := w.synced("web"); condition.Status != metav1.ConditionTrue || creationsIn(w.calls()) > 0 {
					t.Errorf("condition %+v after the annotation was restored", condition)
				}
				wantOwners(t, w, move.owners)

				w.clearFaults()
				w.change("web", func(svc *corev1.Service) {
					move.change(svc)
					annotate(svc, annotation.Spec, "slb.s1.small")
				})
				w.live("web", time.Second)
				w.live("shop", time.Second)
				wantOwners(t, w, move.after)
			})
		})
	}
}

// TestQuotaIsOneForAll: while the account has no room for another CLB, one of the Services that are to move tries it, and each moves once
// there is room.
func TestQuotaIsOneForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		names := []string{"web", "shop", "blog", "wiki"}
		for i, name := range names {
			w.put(born(grouped(name, "edge", 80+int32(i)), int64(i))) //nolint:gosec // small
			w.mustPass(name)
		}
		w.fault(refusalsOfCreation()["quota"])
		for _, name := range names[1:] {
			w.change(name, func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) })
		}
		w.calls()
		for range 32 {
			for _, name := range names {
				w.live(name, 15*time.Second)
			}
		}
		if n := creationsIn(w.calls()); n < 5 || n > 7 {
			t.Errorf("three Services make %d creations in 32 minutes, want one after each pause", n)
		}
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop", "tcp:82 blog", "tcp:83 wiki"}})
		w.clearFaults()
		for range 10 {
			for _, name := range names {
				w.live(name, 15*time.Second)
			}
		}
		if owners := w.ownersOf(); len(owners) != 4 || len(owners[edgeCLB]) != 1 {
			t.Errorf("with room for more CLBs: %v", owners)
		}
		w.leavesNothing(names...)
	})
}

// TestMoveThatIsRefusedWithoutACall: a Service also stays if the cloud config or its annotations forbid the CLB that it is to move to, or
// if that is public and the Service asks for a private one.
func TestMoveThatIsRefusedWithoutACall(t *testing.T) {
	t.Parallel()
	public := func(w *world) {
		svc := grouped("open", "open", 90)
		annotate(svc, annotation.AddressType, "internet")
		w.put(svc)
		w.mustPass("open")
	}
	for name, move := range map[string]struct {
		prepare func(*world)
		change  func(*corev1.Service)
		text    string
	}{
		"public CLBs are switched off": {func(w *world) { w.config.DisablePublicSLB = true; w.restart() }, func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.Group))
			annotate(svc, annotation.AddressType, "internet")
		}, "public CLBs are switched off"},
		"invalid annotation": {func(*world) {}, func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.Group))
			annotate(svc, annotation.AddressType, "secret")
		}, "an annotation on which a new load balancer depends is not accepted"},
		"public group": {public, func(svc *corev1.Service) {
			annotate(svc, annotation.Group, "open")
		}, "is public, and the Service asks for a private one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				w.put(born(grouped("web", "edge", 80), 0))
				w.mustPass("web")
				move.prepare(w)
				w.newEvents()
				address, owners := w.address("web"), w.ownersOf()
				w.change("web", move.change)
				w.calls()
				w.live("web", 10*time.Minute)
				if n := creationsIn(w.calls()); n > 0 {
					t.Errorf("%d attempts to create a CLB", n)
				}
				if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "Warning "+problem.ReasonMoveRefused) ||
					!strings.Contains(events, move.text) {
					t.Errorf("events %s, want %s with %q", events, problem.ReasonMoveRefused, move.text)
				}
				staysUpToDate(t, w, moveToNewCLB{owners: owners}, address)
			})
		})
	}
}
