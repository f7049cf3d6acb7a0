package backend

import (
	"fmt"
	"testing"
)

// TestLostNodesAreReplaced: nodes that are lost leave before others come, and the next choice no longer sees that there were any. It
// replaces them all the same, unless the process that chose before is another one.
func TestLostNodesAreReplaced(t *testing.T) {
	t.Parallel()
	type choice struct{ has, gone, size, nodes, next int }
	for _, test := range []struct {
		name string
		// most is how many backends the load balancer may have, attached how many times each node is one of other Services.
		most, attached int
		swaps          bool
		choices        []choice
	}{
		{"replaced", 0, 0, false, []choice{{12, 2, 0, 12, 12}, {10, 0, 12, 12, 12}, {12, 0, 12, 12, 0}}},
		{"in two calls", 0, 0, false, []choice{{12, 2, 0, 12, 12}, {10, 0, 12, 12, 12}, {11, 0, 12, 12, 12}, {12, 0, 12, 12, 0}}},
		{"another one is lost", 0, 0, false, []choice{{12, 1, 0, 12, 12}, {11, 1, 12, 12, 12}, {10, 0, 12, 12, 12}}},
		{"fewer than the least are left", 0, 0, false, []choice{{12, 4, 0, 13, 12}, {8, 0, 12, 13, 12}, {8, 0, 12, 13, 12}, {13, 0, 12, 13, 0}}},
		{"no room before they have left", 12, 0, false, []choice{{12, 2, 0, 10, 12}, {10, 0, 12, 12, 12}}},
		{"there are no others", 0, 20, false, []choice{{12, 2, 0, 10, 12}, {10, 0, 12, 10, 0}}},
		{"another process", 0, 0, false, []choice{{12, 2, 0, 12, 12}, {10, 0, 0, 10, 0}}},
		{"none is lost", 0, 0, false, []choice{{12, 0, 0, 12, 0}}},
		{"more than it may have now", 0, 0, false, []choice{{12, 0, 20, 14, 14}}},
		{"replaced in one call", 0, 0, true, []choice{{12, 2, 0, 12, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(40, 1, 0)
			f.nodes = f.nodes[4:] // the first ones are gone
			nodes := NewNodeSet(f.nodes)
			for i, c := range test.choices {
				wanted := ChoiceInput{Service: "a", Size: c.size, Crowd: Crowd{
					Quota: 20, Units: 40, Each: 1, Settled: true,
					Load: func(string) int { return 5 }, Attached: func(string) int { return test.attached }, Least: func([]*Node) int { return 5 },
				}}
				wanted.Room = RoomOf(test.most, false, 1, func(yield func(Entry) bool) {
					for k := range c.has {
						if !yield(Entry{Kind: KindInstance, ID: fmt.Sprintf("i-%05d", 4-c.gone+k), Ours: true}) {
							return
						}
					}
				})
				wanted.Room.Swaps = test.swaps
				got := Choose(Input{Nodes: nodes, ControlPlane: ControlPlaneAuto}, wanted)
				if len(got.Nodes) != c.nodes || got.Size != c.next {
					t.Errorf("choice %d: %d nodes and then %d, want %d and %d", i+1, len(got.Nodes), got.Size, c.nodes, c.next)
				}
			}
		})
	}
}
