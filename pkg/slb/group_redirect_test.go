package slb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// redirects are changes of a Service that has begun to move into a group, after which it is to be where it cannot get. mine is an existing
// CLB that it may not use.
func redirects() map[string]func(svc *corev1.Service, mine string) {
	return map[string]func(*corev1.Service, string){
		"its port is taken": func(svc *corev1.Service, _ string) { annotate(svc, annotation.Group, "third") },
		"not reusable": func(svc *corev1.Service, mine string) {
			delete(svc.Annotations, key(annotation.Group))
			annotate(svc, annotation.LoadBalancerID, mine)
		},
		"invalid": func(svc *corev1.Service, _ string) {
			delete(svc.Annotations, key(annotation.Group))
			annotate(svc, annotation.AddressType, "bogus")
		},
	}
}

// livesOn makes passes over Services for a while, which may fail.
func (w *world) livesOn(passes int, names ...string) {
	w.t.Helper()
	for range passes {
		for _, name := range names {
			w.fillGroups()
			_, _ = w.Reconcile(w.t.Context(), w.get(name))
		}
		time.Sleep(20 * time.Second)
	}
}

// TestRedirectedMoveGoesBack: a Service that has begun to move into a group, and shows its old place, is to be elsewhere, where it cannot
// get. It keeps the place that it shows: nobody asks any more for the one where it has begun to move.
func TestRedirectedMoveGoesBack(t *testing.T) {
	t.Parallel()
	for why, redirect := range redirects() {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				mine := w.makeCLB()
				w.putAll(grouped("old", "third", 80), grouped("web", "other", 80))
				shown := w.address("web")
				w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 1})
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
				w.livesOn(1, "web")
				w.change("web", func(svc *corev1.Service) { redirect(svc, mine.ID) })
				w.livesOn(30, "web")
				if now := w.address("web"); now != shown || !w.answers("web", now) {
					t.Errorf("the status shows %s, want %s, which serves; events %v", now, shown, w.newEvents())
				}
				if owners, begun := w.ownersOf()[edgeCLB]; begun {
					t.Errorf("the CLB where the move began stays: %v", owners)
				}
			})
		})
	}
}

// TestRedirectedMoveLeavesNothing: the process ends at any write of a move into a new group, or the answer to the creation is lost, before
// the Service is to be where it cannot get. What was begun goes.
func TestRedirectedMoveLeavesNothing(t *testing.T) {
	t.Parallel()
	for row, from := range []string{"", "other"} {
		for why, redirect := range redirects() {
			for _, died := range testkit.Sample(row, 5) {
				t.Run(fmt.Sprintf("from %q, %s, %d writes", from, why, died), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						threeNodes(w)
						mine := w.makeCLB()
						web := testService("web", 80)
						if from != "" {
							web = grouped("web", from, 80)
						}
						w.putAll(grouped("old", "third", 80), web)
						w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
						if died > 0 {
							w.transport.limit, w.transport.writes = died, 0
						} else {
							w.fault(map[string]any{"action": "CreateLoadBalancer", "drop": "after", "times": 1})
						}
						w.livesOn(1, "web")
						w.restart()
						w.clearFaults()
						w.change("web", func(svc *corev1.Service) { redirect(svc, mine.ID) })
						w.livesOn(20, "web")
						if owners, begun := w.ownersOf()[edgeCLB]; begun {
							t.Errorf("the CLB where the move began stays: %v", owners)
						}
						if now := w.address("web"); !w.answers("web", now) {
							t.Errorf("the status shows %s, which does not serve", now)
						}
					})
				})
			}
		}
	}
}

// TestRedirectToRefusedOwnCLBStays: a Service that has begun to move into a group, and shows its old place, is to have a CLB of its own,
// which the cloud refuses or an annotation. It keeps the place that it shows, which follows the nodes, and what was begun goes. A Service
// that comes from an existing CLB is there as if it had never left.
func TestRedirectToRefusedOwnCLBStays(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"a group", "an existing CLB"} {
		for _, why := range []string{"quota", "invalid"} {
			for when, then := range knownOrNot() {
				t.Run(fmt.Sprintf("from %s, %s, %s", from, why, when), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						threeNodes(w)
						web := grouped("web", "other", 80)
						if from != "a group" {
							web = reusing("web", w.makeCLB().ID, "true", 80)
						}
						w.putAll(grouped("old", "third", 80), web)
						shown := w.address("web")
						w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
						w.change("web", func(svc *corev1.Service) {
							delete(svc.Annotations, key(annotation.LoadBalancerID))
							delete(svc.Annotations, key(annotation.ForceOverrideListeners))
							annotate(svc, annotation.Group, "edge")
						})
						w.livesOn(2, "web")
						then(w)
						w.clearFaults()
						w.change("web", func(svc *corev1.Service) {
							delete(svc.Annotations, key(annotation.Group))
							if why == "invalid" {
								annotate(svc, annotation.AddressType, "bogus")
							}
						})
						if why == "quota" {
							w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "QuotaExceeded.LoadBalancersNum", "status": 400, "times": 1000})
						}
						w.livesOn(20, "web")
						w.replaceNodes()
						w.livesOn(10, "web")
						owners := w.ownersOf()
						if now := w.address("web"); now != shown {
							t.Errorf("the status shows %s, want %s; %v", now, shown, owners)
						}
						w.wantLeads("afterwards", shown, 1, "d", "e", "f")
						if owners, begun := owners[edgeCLB]; begun {
							t.Errorf("the CLB where the move began stays: %v", owners)
						}
					})
				})
			}
		}
	}
}
