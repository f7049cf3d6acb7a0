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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const secondCLB = edgeCLB + "+"

// public makes a Service ask for a public CLB.
func public(svc *corev1.Service) *corev1.Service {
	annotate(svc, annotation.AddressType, "internet")
	return svc
}

// serving makes passes over Services for a time, each in turn, and checks after each that the CLB which shop shows serves it.
func (w *world) serving(rounds int, names ...string) {
	w.t.Helper()
	for range rounds {
		for _, name := range names {
			w.live(name, time.Second)
			if shown := w.address("shop"); !w.answers("shop", shown) {
				w.t.Fatalf("after a pass over %s, shop shows %q, which does not serve it; the listeners: %v; events:\n%s", name, shown, w.ownersOf(),
					strings.Join(w.newEvents(), "\n"))
			}
		}
		time.Sleep(10 * time.Second)
	}
}

// follows checks that nodes which join and leave reach the backend servers of shop.
func (w *world) follows(names ...string) {
	w.t.Helper()
	for _, change := range []struct{ joins, leaves string }{{"d", "a"}, {"a", "d"}} {
		w.addNode(change.joins)
		w.deleteNode(change.leaves)
		w.serving(2, names...)
		if servers := w.backendsOf("shop")["30080"]; len(servers) != 3 || !slices.Contains(servers, "i-"+change.joins) {
			w.t.Errorf("backend servers of shop after %s joined and %s left: %v", change.joins, change.leaves, servers)
		}
	}
}

// TestOverflowKeepsItsListeners: an older Service wants the port of one that may overflow, and the cloud refuses another CLB. The younger
// one keeps its listener, and its backend servers are followed, until it may move. Only then the older one gets the port.
func TestOverflowKeepsItsListeners(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for why, refusal := range refusalsOfCreation() {
		for _, order := range [][]string{{"old", "shop", "blog"}, {"shop", "blog", "old"}} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprint(why, order[0], restarted), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						threeNodes(w)
						w.putAll(overflowing(grouped("shop", "edge", 80)), grouped("blog", "edge", 81))
						w.fault(refusal)
						w.put(born(grouped("old", "edge", 80), -1))
						w.serving(3, order...)
						if restarted {
							w.restart()
						}
						w.serving(3, order...)
						events := strings.Join(w.newEvents(), "\n")
						for _, text := range []string{"Warning " + problem.ReasonMoveRefused,
							"belongs to Service default/shop, which cannot move to another load balancer of the group"} {
							if !strings.Contains(events, text) {
								t.Errorf("events %s lack %q", events, text)
							}
						}
						wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 shop", "tcp:81 blog"}})
						w.follows(order...)
						w.clearFaults()
						w.serving(60, order...) // the refusal is remembered for some minutes
						wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 old", "tcp:81 blog"}, secondCLB: {"tcp:80 shop"}})
						w.silent("afterwards", order...)
						w.leavesNothing(order...)
					})
				})
			}
		}
	}
}

// TestOverflowGoesWhereItMay: an older Service wants the port of one that may overflow and has come to ask for a private address, while the
// next CLB of the group is public, too.
func TestOverflowGoesWhereItMay(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"old", "shop", "blog"}, {"shop", "blog", "old"}} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(order[0], restarted), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					threeNodes(w)
					w.putAll(overflowing(public(grouped("shop", "edge", 80))), overflowing(public(grouped("blog", "edge", 80))))
					w.change("blog", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 82 })
					w.serving(2, "blog", "shop")
					wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 shop"}, secondCLB: {"tcp:82 blog"}})
					w.change("shop", func(svc *corev1.Service) { annotate(svc, annotation.AddressType, "intranet") })
					w.serving(2, "shop", "blog")
					w.put(born(public(grouped("old", "edge", 80)), -1))
					w.serving(1, order...)
					if restarted {
						w.restart()
					}
					w.serving(8, order...)
					wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 old"}, secondCLB: {"tcp:82 blog"}, secondCLB + "+": {"tcp:80 shop"}})
					w.follows(order...)
					w.silent("afterwards", order...)
					w.leavesNothing(order...)
				})
			})
		}
	}
}
