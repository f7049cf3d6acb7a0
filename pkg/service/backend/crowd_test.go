package backend

import (
	"fmt"
	"testing"
)

// TestShares: refusals count for the shares of all Services only where these are not to be had otherwise.
func TestShares(t *testing.T) {
	t.Parallel()
	const nodes, most = 10, 20
	refused := func(n, has int) map[string]int {
		found := map[string]int{"i-gone": 0}
		for i := range n {
			found[fmt.Sprintf("i-%05d", i)] = has
		}
		return found
	}
	for name, test := range map[string]struct {
		most, units int
		refused     map[string]int
		want        int
	}{
		"nothing is refused":                    {most, 40, nil, most},
		"any number":                            {0, 40, refused(nodes, 1), 0},
		"an instance that is gone":              {most, 40, refused(0, 0), most},
		"some":                                  {most, 40, refused(2, 5), most},
		"all, and each has its first share":     {most, 40, refused(nodes, 15), most},
		"all, and not each has its first share": {most, 40, refused(nodes, 14), 14},
		"all, and they fit":                     {most, 18, refused(nodes, 14), most},
		"most":                                  {most, 40, refused(9, 5), 7},
		"more than the quota":                   {most, 40, refused(nodes, 30), most},
		"none may be had":                       {most, 40, refused(nodes, 0), 1},
	} {
		if got := Shares((Input{Nodes: NewNodeSet(newFleet(nodes, 1, 0).nodes), ControlPlane: ControlPlaneAuto}).Ready(), test.most, test.units,
			test.refused); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestLostNodeIsReplaced: all nodes fit, and it is not known what every Service has. Soon it will be; otherwise a node takes the place of
// one that is lost.
func TestLostNodeIsReplaced(t *testing.T) {
	t.Parallel()
	for _, soon := range []bool{false, true} {
		f := newFleet(4, 1, 0)
		room := RoomOf(200, false, 1, func(yield func(Entry) bool) {
			for _, id := range []string{"i-00000", "i-00001", "i-gone"} {
				if !yield(Entry{Kind: KindInstance, ID: id, Ours: true}) {
					return
				}
			}
		})
		none := func(string) int { return 0 }
		choice := Choose(Input{Nodes: NewNodeSet(f.nodes), ControlPlane: ControlPlaneAuto}, ChoiceInput{Service: "a", Room: room, Crowd: Crowd{
			Quota: 10, Units: 5, Each: 1, Soon: soon, Load: none, Attached: none, Least: func([]*Node) int { return 0 },
		}})
		if choice.Waits != soon || soon != choice.Some {
			t.Errorf("soon %v: waits %v, nodes %d", soon, choice.Waits, len(choice.Nodes))
		}
	}
}
