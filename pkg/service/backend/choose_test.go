package backend

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// chooseOf returns the choice of a Service with a number of nodes n0, n1 and so on, of which it has some.
func chooseOf(nodes int, use Use, room Room, has ...string) Choice {
	return chooseSome(nodes, SubsetAuto, use, room, has...)
}

// chooseSome is [chooseOf] for a Service that asks for a number of nodes.
func chooseSome(nodes int, subset Subset, use Use, room Room, has ...string) Choice {
	f := newFleet(nodes, 1, 0)
	entries := func(yield func(Entry) bool) {
		for _, id := range has {
			if !yield(Entry{Kind: KindInstance, ID: id, Ours: true}) {
				return
			}
		}
	}
	swaps, share := room.Swaps, room.Share
	room = RoomOf(room.Quota, false, 1, entries)
	room.Swaps, room.Share = swaps, share
	return Choose(Input{Facts: Facts{Nodes: NewNodeSet(f.nodes)}, ControlPlane: ControlPlaneAuto},
		ChoiceInput{Service: "web", Subset: subset, Room: room, Use: use})
}

func used(times map[string]int) func(string) int { return func(id string) int { return times[id] } }

// TestGivesUpWantedNodes: a Service gives up a node that is wanted more often than it can be a backend, but not the last one, and does not
// take it back.
func TestGivesUpWantedNodes(t *testing.T) {
	t.Parallel()
	for nodes, gives := range map[int]bool{1: false, 6: true} {
		var has []string
		for i := range nodes {
			has = append(has, fmt.Sprintf("i-%05d", i))
		}
		use := Use{Quota: 5, Share: math.Inf(1), Each: 1, Known: true, Load: used(nil), Times: used(map[string]int{"i-00000": 4}),
			Wanted: used(map[string]int{"i-00000": 5})}
		choice := chooseOf(nodes, use, Room{}, has...)
		if choice.Some != gives || gives && len(choice.Nodes) != nodes-1 {
			t.Errorf("%d nodes: %v of them", nodes, len(choice.Nodes))
		}
		use.Assumed = true
		if choice = chooseOf(nodes, use, Room{}, has...); choice.Some {
			t.Errorf("%d nodes: a quota that is only assumed takes a node away", nodes)
		}
	}
}

// TestGivesNothingUpWhileNodesFail: a Service with more than its share gives a node up for another one that has too few, but not while that
// is because nodes have failed.
func TestGivesNothingUpWhileNodesFail(t *testing.T) {
	t.Parallel()
	for failed, want := range map[int]int{0: 8, 10: 9} {
		f := newFleet(20+failed, 1, 0)
		for i := range failed {
			f.nodes[20+i].Ready = false
		}
		room := RoomOf(0, false, 1, func(yield func(Entry) bool) {
			for i := range 9 {
				if !yield(Entry{Kind: KindInstance, ID: fmt.Sprintf("i-%05d", i), Ours: true}) {
					return
				}
			}
		})
		none := used(nil)
		choice := Choose(Input{Facts: Facts{Nodes: NewNodeSet(f.nodes)}, ControlPlane: ControlPlaneAuto},
			ChoiceInput{Service: "web", Room: room, Use: Use{
				Quota: 50, Share: 6, Each: 1, Known: true, Scarce: true, Load: none, Times: none, Wanted: none,
			}})
		if len(choice.Nodes) != want {
			t.Errorf("%d nodes have failed: %d nodes, want %d", failed, len(choice.Nodes), want)
		}
	}
}

// TestClaimsNodes: a Service without any node asks for some that are full, and one that has some does not.
func TestClaimsNodes(t *testing.T) {
	t.Parallel()
	full := func(string) int { return 5 }
	use := Use{Quota: 5, Share: 8, Each: 1, Known: true, Load: full, Times: full, Wanted: full}
	if choice := chooseOf(10, use, Room{}); len(choice.Nodes) > 0 || len(choice.Without) == 0 || !choice.Short {
		t.Errorf("%d nodes, asks for %v", len(choice.Nodes), sets.List(choice.Without))
	}
	if choice := chooseOf(10, use, Room{}, "i-00001"); len(choice.Nodes) != 1 || len(choice.Without) > 0 {
		t.Errorf("%d nodes, asks for %v", len(choice.Nodes), sets.List(choice.Without))
	}
}

// TestClaimsNodesOfItsNumber: a Service with a number of nodes asks for full ones beyond those that it has where all others have all nodes,
// and waits for what they give up of their share where they do not.
func TestClaimsNodesOfItsNumber(t *testing.T) {
	t.Parallel()
	loads := used(map[string]int{"i-00000": 5, "i-00002": 5, "i-00003": 5})
	for share, claims := range map[float64]int{math.Inf(1): 1, 8: 0} {
		use := Use{Quota: 5, Share: share, Each: 1, Known: true, Load: loads, Times: loads, Wanted: loads}
		choice := chooseSome(4, 2, use, Room{}, "i-00001")
		if len(choice.Nodes) != 1 || len(choice.Without) != claims {
			t.Errorf("share %v: %d nodes, asks for %v, want %d", share, len(choice.Nodes), sets.List(choice.Without), claims)
		}
	}
}

// TestUnknownLoadsBalanceNothing: a Service one of whose nodes is a backend much more often than others takes a light one for it once the
// loads of all are known, and not before that: those that a new process knows first would make its own nodes look full.
func TestUnknownLoadsBalanceNothing(t *testing.T) {
	t.Parallel()
	loads := used(map[string]int{"i-00000": 9, "i-00001": 2, "i-00002": 2, "i-00003": 2, "i-00004": 2, "i-00005": 2, "i-00006": 2})
	has := []string{"i-00000", "i-00001", "i-00002", "i-00003"}
	for _, known := range []bool{false, true} {
		use := Use{Quota: 50, Share: 4, Each: 1, Known: known, Fits: true, Load: loads, Times: loads, Wanted: loads}
		choice := chooseOf(10, use, Room{}, has...)
		if moved := choice.Nodes[0].InstanceID != "i-00000"; moved != known || len(choice.Nodes) != len(has) {
			t.Errorf("known %v: %d nodes, moved %v", known, len(choice.Nodes), moved)
		}
	}
}

// TestRefusedNodesAreSkipped: a node that the cloud has refused is not tried.
func TestRefusedNodesAreSkipped(t *testing.T) {
	t.Parallel()
	use := Use{Share: math.Inf(1), Each: 1, Known: true, Load: used(nil), Times: used(nil), Wanted: used(nil),
		Refused: map[string]int{"i-00002": 0}}
	if choice := chooseOf(5, use, Room{}); len(choice.Nodes) != 4 || choice.Nodes[2].InstanceID == "i-00002" {
		t.Errorf("nodes %v", choice.Nodes)
	}
}

// TestShareOfASharedLoadBalancer: a port gets its share of nodes, and one that has more keeps them.
func TestShareOfASharedLoadBalancer(t *testing.T) {
	t.Parallel()
	use := Use{Share: math.Inf(1), Each: 1, Known: true, Fits: true, Load: used(nil), Times: used(nil), Wanted: used(nil)}
	if choice := chooseOf(10, use, Room{Share: 4}); len(choice.Nodes) != 4 {
		t.Errorf("%d nodes, want 4", len(choice.Nodes))
	}
	if choice := chooseOf(10, use, Room{Share: 4}, "i-00001", "i-00002", "i-00003", "i-00004", "i-00005", "i-00006"); len(choice.Nodes) != 6 {
		t.Errorf("%d nodes, want the 6 that it has", len(choice.Nodes))
	}
}
