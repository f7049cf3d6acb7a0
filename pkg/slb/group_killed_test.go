package slb

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// pairChange is a change that concerns two Services of a group: web, which is the older one, and shop.
type pairChange struct {
	name      string
	web, shop *corev1.Service
	act       func(*world)
	// owners is who has which listener in the end.
	owners map[string][]string
}

func pairChanges() []pairChange {
	const otherCLB = "k8s-group-default-other"
	web, shop := grouped("web", "edge", 80), grouped("shop", "edge", 81)
	to := func(group string) func(*corev1.Service) {
		return func(svc *corev1.Service) { annotate(svc, annotation.Group, group) }
	}
	return []pairChange{
		{"the older one takes a port of the younger one", web, overflowing(shop.DeepCopy()), func(w *world) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP)) })
		}, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 web"}, edgeCLB + "+": {"tcp:81 shop"}}},
		{"both move at once", web, shop, func(w *world) {
			w.change("web", to("other"))
			w.change("shop", to("other"))
		}, map[string][]string{otherCLB: {"tcp:80 web", "tcp:81 shop"}}},
		{"the oldest one leaves", web, shop, func(w *world) { w.change("web", to("other")) },
			map[string][]string{edgeCLB: {"tcp:81 shop"}, otherCLB: {"tcp:80 web"}}},
		{"the oldest one is deleted", web, shop, func(w *world) {
			w.change("web", deleteService)
		}, map[string][]string{edgeCLB: {"tcp:81 shop"}}},
	}
}

// TestWritesOfTwoServicesMayGoWrong is [TestEveryWriteMayGoWrong] for what concerns two Services of a group, whichever of them has its pass
// first.
func TestWritesOfTwoServicesMayGoWrong(t *testing.T) {
	t.Parallel()
	for row, change := range pairChanges() {
		for _, order := range [][]string{{"web", "shop"}, {"shop", "web"}} {
			t.Run(change.name+", first "+order[0], func(t *testing.T) {
				t.Parallel()
				var want map[string]cloudLB
				var writes int
				synctest.Test(t, func(t *testing.T) { want, writes = change.undisturbed(t, order) })
				for i, mishap := range mishaps() {
					for _, k := range testkit.Sample(row+i, writes) {
						t.Run(fmt.Sprintf("write %d %s", k+1, mishap.name), func(t *testing.T) {
							t.Parallel()
							synctest.Test(t, func(t *testing.T) {
								w := change.begin(t)
								mishap.arm(w, k)
								change.act(w)
								w.convergeAll(mishap, order)
								if diff := cmp.Diff(want, w.state()); diff != "" {
									t.Errorf("state (-undisturbed +got):\n%s", diff)
								}
								w.drift("web")
								w.drift("shop")
								w.silent("afterwards", order...)
							})
						})
					}
				}
			})
		}
	}
}

func (c pairChange) begin(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	w.putAll(c.web.DeepCopy(), c.shop.DeepCopy())
	return w
}

// undisturbed carries the change out, and returns the state that it leads to and how many writes it makes.
func (c pairChange) undisturbed(t *testing.T, order []string) (state map[string]cloudLB, writes int) {
	t.Helper()
	w := c.begin(t)
	c.act(w)
	w.convergeAll(mishap{}, order)
	if diff := cmp.Diff(c.owners, w.ownersOf()); diff != "" {
		t.Fatalf("listeners (-want +got):\n%s", diff)
	}
	return w.state(), len(writesOf(w.calls()))
}

// convergeAll makes passes over Services in turn until none of them writes anything, not even one more time: a Service whose port was taken
// until a moment ago reads it again in the next pass, which is due a minute later. A mishap has happened once its pass has ended.
func (w *world) convergeAll(mishap mishap, names []string) {
	w.t.Helper()
	silent := 0
	for range 2 * maxPasses {
		before, failed := len(w.emulator.Unread()), false
		for _, name := range names {
			err := w.pass(name)
			failed = failed || err != nil
			if happened := w.transport.isDead() || w.faultHits() > 0; happened && mishap.after != nil {
				mishap.after(w)
				w.clearFaults()
				mishap.after = nil
			}
			if w.staysRefused(name) {
				w.restart() // the program would wait for a minute; one that was started anew need not
			}
		}
		if failed || len(writesIn(w, before)) > 0 {
			silent = 0
		} else if silent++; silent == 2 {
			return
		}
	}
	w.t.Fatalf("not converged after %d passes over each", 2*maxPasses)
}
