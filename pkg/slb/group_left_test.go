package slb

import (
	"testing"
	"testing/synctest"
	"time"
)

// movedWorld is a world with three nodes in which the Service web shows the place that it has just moved to. It returns the address of the
// old one.
func movedWorld(t *testing.T, move stuckMove, grace time.Duration, also ...func(*world)) (w *world, from string) {
	t.Helper()
	w = newWorld(t)
	w.moveGrace = grace
	w.restart()
	threeNodes(w)
	w.putAll(grouped("shop", "other", 81), grouped("mail", "edge", 82), move.web(w.makeCLB().ID, 80))
	from = w.address("web")
	w.change("web", move.change)
	for _, change := range also {
		change(w)
	}
	w.livesOn(1, "web")
	if w.address("web") == from {
		t.Fatal("the Service has not moved")
	}
	return w, from
}

// TestLeftPlaceFollowsTheNodes: a Service shows its new place, and leaves the old one in a while. Until then, the old one follows the
// nodes: clients may still use it.
func TestLeftPlaceFollowsTheNodes(t *testing.T) {
	t.Parallel()
	nothing := func(*world) {}
	for _, move := range stuckMoves() {
		for name, happens := range map[string]struct{ also, then func(*world) }{
			"nodes":                      {nothing, (*world).replaceNodes},
			"nodes in the pass it moves": {(*world).replaceNodes, nothing},
			"nodes and a restart":        {nothing, func(w *world) { w.restart(); w.replaceNodes() }},
			"a read that fails": {nothing, func(w *world) {
				w.replaceNodes()
				next := w.transport.next
				for _, lb := range w.balancers() {
					if lb.Address != w.address("web") {
						w.transport.next = noReads{w.transport.next, lb.ID}
					}
				}
				_ = w.pass("web")
				w.transport.next = next
			}},
		} {
			t.Run(move.name+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w, from := movedWorld(t, move, time.Minute, happens.also)
					happens.then(w)
					w.livesOn(1, "web")
					w.wantLeads("the old place", from, 1, "d", "e", "f")
					w.wantLeads("the new place", w.address("web"), 1, "d", "e", "f")
					w.livesOn(6, "web")
					if left := w.leadsFrom(from); len(left) > 0 {
						t.Errorf("the old place has %v", left)
					}
				})
			})
		}
	}
}
