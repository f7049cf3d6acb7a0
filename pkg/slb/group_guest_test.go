package slb

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// meanwhile has something done just before the first call of an action.
func (w *world) meanwhile(action string, do func()) *testkit.Meanwhile {
	w.fillGroups()
	w.transport.next = &testkit.Meanwhile{Next: w.emulator.Transport(), Action: action, Do: do}
	return w.transport.next.(*testkit.Meanwhile) //nolint:forcetypeassert // it is one
}

// TestLastOfAGroupGoesWithItsGuest: the last Service of a group goes at the same time as one that names the CLB by its ID. None leaves the CLB to the other.
func TestLastOfAGroupGoesWithItsGuest(t *testing.T) {
	t.Parallel()
	for first, calls := range map[string][]string{
		"guest": {"DeleteLoadBalancerListener", "DescribeLoadBalancers", "DescribeVServerGroups"},
		"web":   {"DeleteLoadBalancerListener", "DescribeAccessControlLists"},
	} {
		for _, action := range calls {
			t.Run(first+" first, the other one at its call of "+action, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					other := map[string]string{"guest": "web", "web": "guest"}[first]
					w := bubbleWorld(t)
					threeNodes(w)
					w.putAll(grouped("web", "edge", 80))
					w.put(born(reusing("guest", w.onlyCLB(), "true", 81), 5))
					w.mustPass("guest")
					w.change("web", deleteService)
					w.change("guest", deleteService)
					at := w.meanwhile(action, func() { w.lagging(other, 4) })
					w.lagging(first, 4)
					if !at.End() {
						t.Fatalf("%s makes no call of %s", first, action)
					}
					w.lagging(other, 3)
					w.lagging(first, 3)
					wantOwners(t, w, map[string][]string{})
					if held := slices.Concat(w.get("web").Finalizers, w.get("guest").Finalizers); len(held) > 0 {
						t.Errorf("finalizers %v stay", held)
					}
				})
			})
		}
	}
}

// TestGuestComesWhileTheLastOfAGroupGoes: while the last Service of a group deletes the CLB, another one comes that names it by its ID. Its status shows no CLB
// that goes.
func TestGuestComesWhileTheLastOfAGroupGoes(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"DescribeVServerGroups", "SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bubbleWorld(t)
				threeNodes(w)
				w.putAll(grouped("web", "edge", 80))
				id, shown := w.onlyCLB(), ""
				w.change("web", deleteService)
				at := w.meanwhile(action, func() {
					w.put(born(reusing("guest", id, "true", 81), 5))
					w.lagging("guest", 2)
					shown = w.address("guest")
					w.fillGroups()
				})
				w.lagging("web", 3)
				if !at.End() {
					t.Fatalf("web makes no call of %s", action)
				}
				if shown != "" && !w.answers("guest", shown) {
					t.Errorf("the status showed %s, and CLBs are %v", shown, w.ownersOf())
				}
			})
		})
	}
}
