package nlb

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const secondNLB = edgeNLB + "+"

func unrestricted(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil }

// serving makes passes over Services for a time, each in turn, and checks after each that the NLB which shop shows serves it.
func (w *world) serving(rounds int, names ...string) {
	w.t.Helper()
	for range rounds {
		for _, name := range names {
			w.steps(1, time.Second, name)
			if shown := w.hostname("shop"); !w.answers("shop", shown) {
				w.t.Fatalf("after a pass over %s, shop shows %q, which does not serve it; the listeners: %v; events:\n%s", name, shown, w.ownersOf(),
					strings.Join(w.newEvents(), "\n"))
			}
		}
		w.later(10 * time.Second)
	}
}

// follows checks that nodes which join and leave reach the backend servers of shop.
func (w *world) follows(names ...string) {
	w.t.Helper()
	w.addNodes("n9")
	w.deleteNode("n1")
	w.serving(4, names...)
	if diff := cmp.Diff([]string{"i-n2:30080=100", "i-n9:30080=100"}, w.serversOf("shop")); diff != "" {
		w.t.Errorf("backend servers of shop after a node joined and another left (-want +got):\n%s", diff)
	}
	w.addNodes("n1")
	w.deleteNode("n9")
	w.serving(4, names...)
}

// TestOverflowKeepsItsListeners: an older Service wants the port of one that may overflow, and that may have no listener on any other NLB.
// That one keeps its listener, and its backend servers are followed, until it may move. Only then the older one gets the port.
func TestOverflowKeepsItsListeners(t *testing.T) {
	t.Parallel()
	refused := `{"product":"nlb","action":"CreateLoadBalancer","times":0,"code":"QuotaExceeded.LoadBalancersNum","status":400}`
	for name, test := range map[string]struct {
		forbid, allow func(*world)
		says          string
	}{
		"source ranges": {
			func(w *world) { w.change("shop", sourceRanges) }, func(w *world) { w.change("shop", unrestricted) },
			"the listeners of an NLB cannot be restricted one by one",
		},
		"no other NLB": {func(w *world) { w.account.Fault(refused) }, func(w *world) {
			w.account.ClearFaults()
		}, "QuotaExceeded.LoadBalancersNum"},
	} {
		for i, order := range [][]string{{"old", "shop", "blog"}, {"shop", "blog", "old"}} {
			for j, restarted := range []bool{false, true} {
				if !testkit.Tried(i+j, 2) {
					continue
				}
				t.Run(fmt.Sprint(name, order[0], restarted), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						w.groupWorld(grouped("shop", "edge", 3, testkube.TCP(80), with(annotation.GroupOverflow, "true")),
							grouped("blog", "edge", 4, testkube.TCP(81)))
						test.forbid(w)
						w.serving(2, "shop", "blog")
						w.newEvents()
						w.put(grouped("old", "edge", 1, testkube.TCP(80)))
						w.serving(2, order...)
						if restarted {
							w.restart()
						}
						w.serving(4, order...)
						events := w.newEvents()
						mustReport(t, events, "Warning "+problem.ReasonMoveRefused, test.says)
						mustReport(t, events, "Warning "+problem.ReasonListenerConflict,
							"belongs to Service default/shop, which cannot move to another load balancer of the group")
						w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 shop", "tcp:81 blog"}})
						w.follows(order...)
						test.allow(w)
						w.serving(60, order...) // the refusal of a creation is remembered for some minutes
						w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 old", "tcp:81 blog"}, secondNLB: {"tcp:80 shop"}})
						w.silent(order...)
						w.leavesNothing(order...)
					})
				})
			}
		}
	}
}

// TestForbiddenInTheMiddleOfAMove: a Service that is about to move to the next NLB of its group, for which an older one came, may have no
// listener there any more, or has no reason to move any more, whatever of the move was done by then: it serves all the time, and nothing of
// a new NLB stays.
func TestForbiddenInTheMiddleOfAMove(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"restricted":             func(w *world) { w.change("shop", sourceRanges) },
		"the older one goes":     func(w *world) { w.delete("old") },
		"it overflows no longer": func(w *world) { w.change("shop", without(annotation.GroupOverflow), sourceRanges) },
	} {
		for i, restarted := range []bool{false, true} {
			for _, passes := range testkit.Sample(3*i+len(name), 12) {
				t.Run(fmt.Sprint(name, passes, restarted), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						w.groupWorld(grouped("shop", "edge", 3, testkube.TCP(80), with(annotation.GroupOverflow, "true")))
						w.put(grouped("old", "edge", 1, testkube.TCP(80)))
						w.steps(1, 0, "old")
						for range passes {
							w.steps(1, 4*settle, "shop")
						}
						change(w)
						if restarted {
							w.restart()
						}
						overflowing := w.get("shop").Annotations[annotation.GroupOverflow.Key()] != ""
						if overflowing {
							w.serving(10, "shop", "old")
						} else {
							w.steps(10, 10*settle, "shop", "old")
						}
						for _, lb := range testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t) {
							if len(w.listeners(lb.ID)) == 0 {
								t.Errorf("NLB %s has no listener; the listeners: %v", lb.ID, w.ownersOf())
							}
						}
						if overflowing {
							w.follows("shop", "old")
						}
						w.silent("shop")
						if name == "the older one goes" {
							w.leavesNothing("shop")
						} else {
							w.leavesNothing("shop", "old")
						}
					})
				})
			}
		}
	}
}
