package backend

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkChoose is what a node event costs a Service that has 80 of 5,000 nodes, and none that changes.
func BenchmarkChoose(b *testing.B) {
	const nodes, backends = 5000, 80
	f := newFleet(nodes, 3, 0)
	set := NewNodeSet(f.nodes)
	wish := Wish{Service: "a", Room: RoomOf(200, false, 1, func(yield func(Entry) bool) {
		for i := range backends {
			if !yield(Entry{Kind: KindInstance, ID: fmt.Sprintf("i-%05d", i*nodes/backends), Ours: true}) {
				return
			}
		}
	}), Crowd: Crowd{
		Quota: 50, Units: 2000, Each: 1, Total: 32 * nodes, Settled: true,
		Load: func(string) int { return 32 }, Least: func([]*Node) int { return 32 },
	}}
	for b.Loop() {
		if choice := Choose(Input{Nodes: set, ControlPlane: ControlPlaneAuto}, wish); len(choice.Nodes) != backends {
			b.Fatalf("%d nodes", len(choice.Nodes))
		}
		wish.Service = types.UID("a")
	}
}
