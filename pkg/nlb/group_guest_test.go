package nlb

import (
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// guestWorld makes a world with the Service web as the only one of its group, and returns the id of its NLB and a change by which another
// Service names that.
func guestWorld(w *world) (id string, guest func()) {
	w.t.Helper()
	w.groupWorld(grouped("web", "edge", 0, testkit.TCP(80)))
	id = w.named(edgeNLB)
	return id, func() {
		w.put(newService("guest", testkit.TCP(81), born(1), with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true")))
		w.fillServices()
		_ = w.tryOne("guest")
	}
}

// meanwhile has something done just before the first call of an action.
func (w *world) meanwhile(action string, do func()) *testkit.Meanwhile {
	w.fillServices()
	at := &testkit.Meanwhile{Next: w.account.Transport(), Action: action, Do: do}
	w.transport.next = at
	return at
}

// TestLastOfAGroupGoesWithItsGuest: the last Service of a group goes at the same time as one that names the NLB by its ID. None leaves the
// NLB to the other.
func TestLastOfAGroupGoesWithItsGuest(t *testing.T) {
	t.Parallel()
	for first, calls := range map[string][]string{
		"guest": {"ListListeners", "DeleteListener", "DeleteServerGroup"},
		"web":   {"ListListeners", "DeleteListener", "DeleteServerGroup"},
	} {
		for _, action := range calls {
			t.Run(first+" first, the other one at its call of "+action, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					other := map[string]string{"guest": "web", "web": "guest"}[first]
					_, guest := guestWorld(w)
					guest()
					w.remove("web")
					w.remove("guest")
					at := w.meanwhile(action, func() { _ = w.tryOne(other) })
					_ = w.tryOne(first)
					if !at.End() {
						t.Fatalf("%s makes no call of %s", first, action)
					}
					_ = w.tryOne(other)
					_ = w.tryOne(first)
					w.wantOwners(map[string][]string{})
					if held := slices.Concat(w.get("web").Finalizers, w.get("guest").Finalizers); len(held) > 0 {
						t.Errorf("finalizers %v stay", held)
					}
				})
			})
		}
	}
}

// TestGuestComesWhileTheLastOfAGroupGoes: while the last Service of a group deletes the NLB, another one comes that names it by its ID. Its
// status shows no NLB that goes.
func TestGuestComesWhileTheLastOfAGroupGoes(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"UpdateLoadBalancerProtection", "DeleteLoadBalancer"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id, guest := guestWorld(w)
				w.remove("web")
				shown := ""
				at := w.meanwhile(action, func() { guest(); shown = w.hostname("guest") })
				_ = w.tryOne("web")
				if !at.End() {
					t.Fatalf("web makes no call of %s", action)
				}
				if shown != "" && !w.exists(id) {
					t.Errorf("the status showed %s, which is gone", shown)
				}
			})
		})
	}
}
