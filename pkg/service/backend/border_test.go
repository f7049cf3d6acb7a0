package backend

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// mixedFleet is a fleet at the border: Services that want all nodes, and others that want a number of them, of which about as many fit as
// there are.
func mixedFleet(random *rand.Rand, seed uint64) *fleet {
	nodes := 6 + random.IntN(40)
	f := newFleet(nodes, 1+random.IntN(4), 0)
	f.quota, f.most, f.subsets = 3+random.IntN(10), 200, map[types.UID]Subset{}
	if random.IntN(2) == 0 {
		f.most = 4 + random.IntN(30)
	}
	auto, numbered := 1+random.IntN(f.quota+6), random.IntN(2*f.quota)
	for i := range auto + numbered {
		svc := types.UID(fmt.Sprintf("service-%d-%d", seed, i))
		f.services = append(f.services, svc)
		if i >= auto {
			f.subsets[svc] = Subset(1 + random.IntN(nodes))
		}
	}
	random.Shuffle(len(f.services), func(i, j int) { f.services[i], f.services[j] = f.services[j], f.services[i] })
	return f
}

// crowding is how much of the nodes each Service may have.
func (f *fleet) crowding() Crowding { return Crowd{Quota: f.quota, Units: f.units()}.Crowding() }

// TestNodeAtTheBorderOfQuotas: nodes join and leave one by one while all nodes just fit the quotas, or just do not. In the pass that
// follows, no Service gives up more than one node beside the one that has left, and none gets more than one beside the one that has joined,
// or two in place of one that has left. The exceptions are those that docs/explanation/scale.md names: Services with auto get all nodes
// once these fit, and more where the node makes a step of what each may have, and where a Service lacks more than half of what it needs,
// the others make room for it.
func TestNodeAtTheBorderOfQuotas(t *testing.T) {
	t.Parallel()
	passes, exceptions := 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // not a secret
		f := mixedFleet(random, seed)
		f.settle(t)
		next := len(f.nodes)
		for event := range 30 {
			before, step := maps.Clone(f.has), f.crowding()
			var id string
			if joins := event/10%2 == int(seed%2) || len(f.nodes) <= 3; joins { //nolint:gosec // 0 or 1
				f.join(next, f.nodes[random.IntN(len(f.nodes))].Zone)
				next++
				id = f.nodes[len(f.nodes)-1].InstanceID
			} else {
				id = f.leave(random.IntN(len(f.nodes)))
			}
			many := f.many.Len() > 0
			f.pass(f.services)
			for _, svc := range f.services {
				passes++
				came, left := f.has[svc].Difference(before[svc]).Delete(id), before[svc].Difference(f.has[svc]).Delete(id)
				if came.Len() <= 1 && left.Len() <= 1 {
					continue
				}
				exceptions++
				grows := f.subsets[svc] == SubsetAuto && (step != f.crowding() || !step.Crowded)
				if left.Len() > 1 && !many && f.many.Len() == 0 || came.Len() > 1 && !grows && 2*before[svc].Len() >= len(f.nodes)/2 {
					t.Errorf("seed %d, event %d: %s with %d of %d nodes gets %v and gives up %v", seed, event, svc, before[svc].Len(), len(f.nodes),
						sets.List(came), sets.List(left))
				}
			}
			f.settle(t)
		}
	}
	t.Logf("%d of %d changes are more than one node", exceptions, passes)
	if exceptions*500 > passes {
		t.Errorf("%d of %d changes are more than one node", exceptions, passes)
	}
}
