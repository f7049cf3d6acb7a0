package backend

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestZoneWithTooFewGetsOne: a zone has one node of a Service, and should have two. The choices come to an end, and it has two: the node that makes room is one
// of another zone.
func TestZoneWithTooFewGetsOne(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"no room": 4, "room": 5} {
		f := newFleet(0, 0, 0)
		for i, zone := range []string{"b", "b", "a", "a", "a"} {
			f.join(i, zone)
		}
		for i := range 20 { // which node is the best depends on the Service
			svc := types.UID(fmt.Sprint("service-", i))
			has := sets.New("i-00000", "i-00002", "i-00003", "i-00004")
			ended := false
			for range 20 {
				room := RoomOf(most, false, 1, func(yield func(Entry) bool) {
					for id := range has {
						if !yield(Entry{Kind: KindInstance, ID: id, Ours: true}) {
							return
						}
					}
				})
				chosen := sets.New[string]()
				for _, node := range Choose(Input{Nodes: NewNodeSet(f.nodes), ControlPlane: ControlPlaneAuto}, Wish{Service: svc, Subset: 4, Room: room, Crowd: Crowd{
					Quota: 50, Units: 60, Each: 1, Total: 50, Settled: true, Load: func(string) int { return 10 }, Least: func([]*Node) int { return 10 },
				}}).Nodes {
					chosen.Insert(node.InstanceID)
				}
				if ended = chosen.Equal(has); ended {
					break
				}
				has = chosen
			}
			if !ended || !has.HasAll("i-00000", "i-00001") {
				t.Errorf("%s, %s: ended: %v, backends %v", name, svc, ended, sets.List(has))
			}
		}
	}
}
