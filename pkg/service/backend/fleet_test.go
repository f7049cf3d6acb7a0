package backend

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// fleet is nodes, and Services that choose among them one after the other. What the cloud has of each Service is what it chose last.
type fleet struct {
	nodes    []Node
	services []types.UID
	has      map[types.UID]sets.Set[string]
	// unknown is of how many Services nobody knows what they have.
	unknown int
	// short are the Services that have too few nodes.
	short sets.Set[types.UID]
	// most is how many backends a load balancer may have, quota how many times an instance may be a backend, 0 for any number.
	most, quota int
	subset      Subset
	// subsets are those of single Services.
	subsets map[types.UID]Subset
}

func newFleet(nodes, zones, services int) *fleet {
	f := &fleet{has: map[types.UID]sets.Set[string]{}, short: sets.New[types.UID]()}
	for i := range nodes {
		f.join(i, fmt.Sprintf("zone-%d", i%zones))
	}
	for i := range services {
		f.services = append(f.services, types.UID(fmt.Sprintf("service-%04d", i)))
	}
	return f
}

func (f *fleet) join(i int, zone string) {
	f.nodes = append(f.nodes,
		Node{Name: fmt.Sprintf("n%05d", i), InstanceID: fmt.Sprintf("i-%05d", i), Zone: zone, Candidate: true, Ready: true})
}

func (f *fleet) leave(at int) string {
	id := f.nodes[at].InstanceID
	f.nodes = slices.Delete(f.nodes, at, at+1)
	return id
}

// loads are how many times each instance is a backend.
func (f *fleet) loads() map[string]int {
	loads := map[string]int{}
	for _, has := range f.has {
		for id := range has {
			loads[id]++
		}
	}
	return loads
}

// pass has the Services choose, in any order, and returns how many backends of each changed: the larger number of those that came and that
// left.
func (f *fleet) pass(order []types.UID) map[types.UID]int {
	set := NewNodeSet(slices.Clone(f.nodes))
	loads, total := f.loads(), 0
	for _, n := range loads {
		total += n
	}
	present := sets.New[string]()
	for i := range f.nodes {
		present.Insert(f.nodes[i].InstanceID)
	}
	changes := map[types.UID]int{}
	for _, svc := range order {
		has := f.has[svc]
		for id := range has {
			loads[id]--
		}
		total -= has.Len()
		chosen := f.choose(set, svc, loads, total)
		came, left := chosen.Difference(has), has.Difference(chosen)
		if n := max(came.Len(), left.Len()); n > 0 {
			changes[svc] = n
		}
		for id := range chosen {
			loads[id]++
		}
		total += chosen.Len()
		f.has[svc] = chosen
	}
	return changes
}

func (f *fleet) choose(set *NodeSet, svc types.UID, loads map[string]int, _ int) sets.Set[string] {
	in := Input{Facts: Facts{Nodes: set}, ControlPlane: ControlPlaneAuto}
	room := RoomOf(f.most, false, 1, func(yield func(Entry) bool) {
		for id := range f.has[svc] {
			if !yield(Entry{Kind: KindInstance, ID: id, Ours: true}) {
				return
			}
		}
	})
	room.Swaps = true
	f.short.Delete(svc)
	times := func(id string) int { return loads[id] }
	choice := Choose(in, ChoiceInput{Service: svc, Subset: f.subsetOf(svc), Room: room, Use: Use{
		Quota: f.quota, Share: ShareOf(f.quota, len(f.nodes), f.units(), 0), Each: 1, Known: f.unknown == 0, Scarce: f.short.Len() > 0,
		Fits: f.quota == 0 || len(f.services) <= f.quota, Load: times, Times: times, Wanted: times,
	}})
	if choice.Short {
		f.short.Insert(svc)
	}
	return sets.New(choice.InstanceIDs(in)...)
}

// subsetOf is how many nodes a Service asks for.
func (f *fleet) subsetOf(svc types.UID) Subset {
	if own, ok := f.subsets[svc]; ok {
		return own
	}
	return f.subset
}

// units is how many times each node is a backend if every Service gets what it asks for.
func (f *fleet) units() int {
	all, some := 0, 0
	for _, svc := range f.services {
		if number := int(f.subsetOf(svc)); number > 0 {
			some += min(number, len(f.nodes))
		} else {
			all++
		}
	}
	return all + (some+len(f.nodes)-1)/len(f.nodes)
}

// settle has the Services choose until nothing changes.
func (f *fleet) settle(t *testing.T) {
	t.Helper()
	for range 200 {
		if len(f.pass(f.services)) == 0 {
			return
		}
	}
	t.Fatal("the Services go on changing their backends")
}

// check holds the choice of all Services to what it must always be.
func (f *fleet) check(t *testing.T) {
	t.Helper()
	loads, zones := f.loads(), map[string]string{}
	sizes, total := map[string]int{}, 0
	for i := range f.nodes {
		zones[f.nodes[i].InstanceID] = f.nodes[i].Zone
		sizes[f.nodes[i].Zone]++
	}
	for id, n := range loads {
		if total += n; f.quota > 0 && n > f.quota {
			t.Errorf("%s is a backend %d times, the quota is %d", id, n, f.quota)
		}
	}
	mean := float64(total) / float64(len(f.nodes))
	for id, n := range loads {
		if float64(n) > max(1.3*mean, mean+1) {
			t.Errorf("%s is a backend %d times, the mean is %.1f", id, n, mean)
		}
	}
	for svc, has := range f.has {
		if f.most > 0 && has.Len() > f.most {
			t.Errorf("%s has %d backends, the quota is %d", svc, has.Len(), f.most)
		}
		in := map[string]int{}
		for id := range has {
			if _, ok := zones[id]; !ok {
				t.Errorf("%s has %s, which is gone", svc, id)
			}
			in[zones[id]]++
		}
		for zone, nodes := range sizes {
			if least := min(zoneNodes, nodes, has.Len()/len(sizes)); in[zone] < least && f.spare(zone, loads, max(1.3*mean, mean+1)) {
				t.Errorf("%s has %d backends in %s of %d nodes, want %d of %d", svc, in[zone], zone, nodes, least, has.Len())
			}
		}
	}
}

// spare reports whether a zone has a node that may become a backend once more.
func (f *fleet) spare(zone string, loads map[string]int, most float64) bool {
	return slices.ContainsFunc(f.nodes, func(node Node) bool { return node.Zone == zone && float64(loads[node.InstanceID]+1) <= most })
}

// TestBelowTheQuotasAllNodesAreBackends: nothing is chosen while all nodes fit, whatever is known.
func TestBelowTheQuotasAllNodesAreBackends(t *testing.T) {
	t.Parallel()
	f := newFleet(200, 3, 50)
	f.most, f.quota = 200, 50
	f.pass(f.services)
	for svc, has := range f.has {
		if has.Len() != 200 {
			t.Errorf("%s has %d backends", svc, has.Len())
		}
	}
	if again := f.pass(f.services); len(again) > 0 {
		t.Errorf("the second pass changed %d Services", len(again))
	}
}

// TestSubsetFits: at any size the choice fits, is balanced, covers the zones and comes to rest.
func TestSubsetFits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		nodes, zones, services, most, quota int
		subset                              Subset
	}{
		{201, 3, 1, 200, 50, SubsetAuto}, {600, 3, 40, 200, 50, SubsetAuto}, {50, 2, 51, 200, 50, SubsetAuto}, {50, 1, 100, 50, 50, SubsetAuto},
		{300, 3, 200, 200, 50, SubsetAuto}, {500, 5, 100, 50, 50, 25}, {10, 3, 20, 4, 50, SubsetAuto}, {7, 3, 12, 4, 50, SubsetAuto},
		{300, 3, 100, 200, 0, 9},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			t.Parallel()
			f := newFleet(test.nodes, test.zones, test.services)
			f.most, f.quota, f.subset = test.most, test.quota, test.subset
			f.settle(t)
			f.check(t)
		})
	}
}

// TestNewLeaderChoosesTheSame: what is in the cloud decides, and not the order in which Services have their turn or what a process
// remembers.
func TestNewLeaderChoosesTheSame(t *testing.T) {
	t.Parallel()
	f := newFleet(300, 3, 150)
	f.most, f.quota = 200, 50
	f.settle(t)
	for seed := range uint64(5) {
		order := slices.Clone(f.services)
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if changes := f.pass(order); len(changes) > 0 {
			t.Errorf("seed %d: %d Services changed", seed, len(changes))
		}
	}
	first := f.choose(NewNodeSet(slices.Clone(f.nodes)), "another", f.loads(), 0)
	if second := f.choose(NewNodeSet(slices.Clone(f.nodes)), "another", f.loads(), 0); !first.Equal(second) {
		t.Error("the same inputs, another choice")
	}
}

// TestOneNodeChangesOneBackend: a node that joins or leaves changes at most one backend of each Service, and only of Services that have it
// before or afterwards.
func TestOneNodeChangesOneBackend(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                         string
		nodes, services, most, quota int
		subset                       Subset
	}{
		{"load balancers full", 201, 20, 200, 50, SubsetAuto}, {"attachments used up", 120, 200, 200, 50, SubsetAuto},
		{"a number", 120, 80, 200, 50, 12},
		{"four backends", 9, 10, 4, 50, SubsetAuto},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(test.nodes, 3, test.services)
			f.most, f.quota, f.subset = test.most, test.quota, test.subset
			f.settle(t)
			random := rand.New(rand.NewPCG(7, 7))
			next := test.nodes
			for event := range 30 {
				f.event(t, random, &next, event)
			}
			f.settle(t)
			f.check(t)
		})
	}
}

// event has a node join or leave, and checks what changes.
func (f *fleet) event(t *testing.T, random *rand.Rand, next *int, event int) {
	t.Helper()
	var id string
	joins := event%2 == 0
	if joins {
		f.join(*next, fmt.Sprintf("zone-%d", *next%3))
		*next++
		id = f.nodes[len(f.nodes)-1].InstanceID
	} else {
		id = f.leave(random.IntN(len(f.nodes)))
	}
	before := map[types.UID]sets.Set[string]{}
	maps.Copy(before, f.has)
	for svc, n := range f.pass(f.services) {
		switch {
		case n > 1:
			t.Errorf("event %d: %s changed %d backends", event, svc, n)
		case !before[svc].Has(id) && !f.has[svc].Has(id):
			f.other(t, event, svc)
		}
	}
}

// other allows that the number of nodes of a Service follows the number of all nodes, which few do at a time, and that one node of a few is
// much.
func (f *fleet) other(t *testing.T, event int, svc types.UID) {
	t.Helper()
	if len(f.nodes) > 50 && (f.subset > 0 || len(f.services) <= f.quota) {
		t.Errorf("event %d: %s has nothing to do with the node and changed", event, svc)
	}
}

// TestFewServicesChangeWithANode: with attachments used up, a node event changes not many more Services than have the node.
func TestFewServicesChangeWithANode(t *testing.T) {
	t.Parallel()
	f := newFleet(240, 3, 160)
	f.most, f.quota = 200, 50
	f.settle(t)
	for i := range 20 {
		id := f.leave(i * 7)
		held := 0
		for _, has := range f.has {
			if has.Has(id) {
				held++
			}
		}
		if changed := len(f.pass(f.services)); changed > held+len(f.services)/20 {
			t.Errorf("%d Services changed, %d had the node", changed, held)
		}
	}
}

// TestCrossingTheBorder: with one Service too many all give nodes up, and get all nodes again without it.
func TestCrossingTheBorder(t *testing.T) {
	t.Parallel()
	f := newFleet(40, 2, 50)
	f.most, f.quota = 200, 50
	f.settle(t)
	f.services = append(f.services, "one-more")
	f.pass(f.services) // it finds that all nodes are full
	f.settle(t)
	f.check(t)
	if n := f.has["one-more"].Len(); n < 10 {
		t.Errorf("the last Service has %d backends", n)
	}
	f.services = f.services[:50]
	delete(f.has, "one-more")
	f.settle(t)
	for svc, has := range f.has {
		if has.Len() != 40 {
			t.Errorf("%s has %d backends again, want all 40", svc, has.Len())
		}
	}
}

// TestUnknownTakesNothingAway: while it is not known what all Services have, nobody gives nodes up for them.
func TestUnknownTakesNothingAway(t *testing.T) {
	t.Parallel()
	f := newFleet(40, 2, 50)
	f.most, f.quota = 200, 50
	f.settle(t)
	for range 30 {
		f.services = append(f.services, types.UID(fmt.Sprintf("more-%d", len(f.services))))
	}
	f.unknown = 30
	if changes := f.pass(f.services[:50]); len(changes) > 0 {
		t.Errorf("%d Services changed before the others were known", len(changes))
	}
}

// TestGrowingClusterEvensOut: after the number of nodes has doubled, the new ones have their share.
func TestGrowingClusterEvensOut(t *testing.T) {
	t.Parallel()
	f := newFleet(60, 3, 100)
	f.most, f.quota, f.subset = 200, 50, 12
	f.settle(t)
	for i := range 60 {
		f.join(60+i, fmt.Sprintf("zone-%d", i%3))
		f.pass(f.services)
	}
	f.settle(t)
	f.check(t)
}

// TestLaterZonesEvenOut: the nodes of zones that come later are chosen for the sake of the zones only until each Service has some. Those
// that were chosen most often meanwhile give places up to others.
func TestLaterZonesEvenOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		each, atOnce, services int
		subset                 Subset
	}{{60, 1, 40, 12}, {60, 1, 40, 25}, {60, 60, 40, 25}, {60, 10, 40, 25}, {60, 1, 100, 25}, {20, 1, 100, 12}, {100, 1, 100, SubsetAuto}} {
		t.Run(fmt.Sprintf("%d nodes per zone, %d at once, %d Services, %v", c.each, c.atOnce, c.services, c.subset), func(t *testing.T) {
			t.Parallel()
			f := newFleet(c.each, 1, c.services)
			f.most, f.quota, f.subset = 200, 50, c.subset
			f.settle(t)
			for i := range 2 * c.each {
				f.join(c.each+i, fmt.Sprintf("zone-%d", 1+i/c.each))
				if (i+1)%c.atOnce == 0 {
					f.pass(f.services)
				}
			}
			f.settle(t)
			f.check(t)
		})
	}
}

// TestNodeEventsKeepTheBalance: in clusters of several sizes and under all kinds of node events, no node is a backend more often than 1.2
// times the mean, or than the quota allows, and each event changes few backends.
func TestNodeEventsKeepTheBalance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ nodes, services, events int }{{300, 120, 40}, {1250, 500, 10}} {
		t.Run(fmt.Sprint(test.nodes, " nodes, ", test.services, " Services"), func(t *testing.T) {
			t.Parallel()
			f := newFleet(test.nodes, 3, test.services)
			f.most, f.quota = backendsPerCLB, clbsPerInstance
			f.settle(t)
			random, next := rand.New(rand.NewPCG(1, 2)), test.nodes
			most, changes, largest := 0.0, 0, 0
			for event := range test.events {
				if event%2 == 0 {
					f.join(next, fmt.Sprintf("zone-%d", next%3))
					next++
				} else {
					f.leave(random.IntN(len(f.nodes)))
				}
				sum := 0
				for _, n := range f.pass(f.services) {
					sum += n
				}
				changes, largest = changes+sum, max(largest, sum)
				most = max(most, f.imbalance(t))
			}
			t.Logf("load at most %.2f of the mean; %.1f changes per node event, %d at most", most, float64(changes)/float64(test.events), largest)
			if most > 1.2 {
				t.Errorf("a node is a backend %.2f times as often as the mean", most)
			}
			if largest > 50 {
				t.Errorf("a node event changes %d backends", largest)
			}
			if again := f.pass(f.services); len(again) > 0 {
				t.Errorf("without an event, %d Services change", len(again))
			}
		})
	}
}

// imbalance returns how many times the mean the fullest node is a backend, which is to be below the quota.
func (f *fleet) imbalance(t *testing.T) float64 {
	t.Helper()
	total, most := 0, 0
	for _, n := range f.loads() {
		total, most = total+n, max(most, n)
	}
	if most > f.quota {
		t.Errorf("a node is a backend %d times, the quota is %d", most, f.quota)
	}
	return float64(most*len(f.nodes)) / float64(total)
}
