package backend

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// fullBalancer is a load balancer with a group, whose quota the pods of a Service with externalTrafficPolicy Local exceed.
type fullBalancer struct {
	t     *testing.T
	quota int
	swaps bool
	has   sets.Set[string]
	// other is what the group of another port of the Service has, which has as much room.
	other sets.Set[string]
	// left is how many backends the last pass took out.
	left int
}

// pass makes one pass, which adds first, except where the product replaces backends in one call. It reports whether it changed anything.
func (f *fullBalancer) pass(backends []Backend) bool {
	f.t.Helper()
	groups := map[string]sets.Set[string]{"this": f.has}
	if f.other != nil {
		groups["other"] = f.other
	}
	room := RoomOf(f.quota*len(groups), false, len(groups), func(yield func(Entry) bool) {
		for group, has := range groups {
			for id := range has {
				if !yield(Entry{Kind: KindInstance, ID: id, Ours: true, Group: group}) {
					return
				}
			}
		}
	})
	room.Swaps = f.swaps
	r := &Resolver{in: Input{Facts: Facts{Choice: Choice{Room: room}}}}
	set := Set{Backends: slices.Clone(backends)}
	r.fitRoom(&set, "this")
	after := sets.New[string]()
	for i := range set.Backends {
		after.Insert(set.Backends[i].ID)
	}
	added, removed := after.Difference(f.has), f.has.Difference(after)
	f.left = len(removed)
	if !f.swaps && len(f.has)+len(added) > f.quota && len(after) > 1 {
		f.t.Fatalf("%d backends come where %d of %d are", len(added), len(f.has), f.quota)
	}
	if set.Balances && (len(removed) != 1 || f.swaps != (len(added) == 1)) {
		f.t.Fatalf("a pass for balance adds %v and takes out %v", added, removed)
	}
	f.has = after
	return len(added)+len(removed) > 0
}

// zones returns how many backends of each zone there are.
func (f *fullBalancer) zones(backends []Backend) map[string]int {
	found := map[string]int{}
	for i := range backends {
		if f.has.Has(backends[i].ID) {
			found[backends[i].Zone]++
		}
	}
	return found
}

func inZone(zone string, from, to, weight int) []Backend {
	var backends []Backend
	for i := from; i < to; i++ {
		backends = append(backends, Backend{Kind: KindInstance, ID: fmt.Sprintf("%s%02d", zone, i), Zone: zone, Weight: weight})
	}
	return backends
}

// TestPlacesOfZones: the pods of one zone fill the load balancer, and those of another zone come later. It gets its share of the places,
// one in each pass.
func TestPlacesOfZones(t *testing.T) {
	t.Parallel()
	for _, swaps := range []bool{true, false} {
		t.Run(fmt.Sprint("swaps ", swaps), func(t *testing.T) {
			t.Parallel()
			f := &fullBalancer{t: t, quota: 6, swaps: swaps, has: sets.New[string]()}
			backends := inZone("a", 0, 10, 1)
			f.pass(backends)
			backends = append(backends, inZone("b", 0, 10, 100)...)
			passes := 0
			for f.pass(backends) {
				if passes++; f.left > 1 || len(f.has) < 5 {
					t.Fatalf("pass %d: %d backends leave, %v are there", passes, f.left, sets.List(f.has))
				}
			}
			if got, want := f.zones(backends), map[string]int{"a": 3, "b": 3}; !maps.Equal(got, want) || passes > 6 {
				t.Errorf("after %d passes: %v, want %v", passes, got, want)
			}
		})
	}
}

// TestPlacesByWeight: a backend takes the place of another one of its zone if it has many more pods, and not for one pod more.
func TestPlacesByWeight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		light, heavy int
		moves        bool
	}{{1, 1, false}, {1, 2, false}, {1, 3, true}, {2, 3, false}, {2, 4, true}, {3, 4, false}, {5, 7, false}, {6, 9, true}, {100, 50, false}} {
		for _, swaps := range []bool{true, false} {
			f := &fullBalancer{t: t, quota: 2, swaps: swaps, has: sets.New("a00", "a01")}
			backends := slices.Concat(inZone("a", 0, 1, 1000), inZone("a", 1, 2, test.light), inZone("a", 2, 3, test.heavy))
			for range 4 {
				f.pass(backends)
			}
			if f.has.Has("a02") != test.moves || len(f.has) != 2 || !f.has.Has("a00") {
				t.Errorf("%d beside %d pods, swaps %v: %v", test.heavy, test.light, swaps, sets.List(f.has))
			}
		}
	}
}

// TestOnlyPlaceStays: the only place of a Service changes hands in one call or not at all: without one, the Service would have no backend
// in between.
func TestOnlyPlaceStays(t *testing.T) {
	t.Parallel()
	for _, swaps := range []bool{true, false} {
		f := &fullBalancer{t: t, quota: 1, swaps: swaps, has: sets.New("a00")}
		backends := slices.Concat(inZone("a", 0, 1, 1), inZone("a", 1, 2, 9))
		for range 3 {
			if f.pass(backends); len(f.has) != 1 || f.has.Has("a01") != swaps {
				t.Errorf("swaps %v: %v", swaps, sets.List(f.has))
			}
		}
	}
}

// TestPlacesOfAnotherPort: a group keeps its own backends, whatever the group of another port of the Service has, and one at a time gives
// its place up.
func TestPlacesOfAnotherPort(t *testing.T) {
	t.Parallel()
	for _, swaps := range []bool{true, false} {
		f := &fullBalancer{t: t, quota: 2, swaps: swaps, has: sets.New("a00", "a01"), other: sets.New("a02", "a03")}
		backends := slices.Concat(inZone("a", 0, 2, 1), inZone("a", 2, 4, 9))
		for f.pass(backends) {
			if f.left > 1 || len(f.has) == 0 {
				t.Errorf("swaps %v: %d backends leave, %v are there", swaps, f.left, sets.List(f.has))
			}
		}
		if !f.has.Equal(f.other) {
			t.Errorf("swaps %v: %v", swaps, sets.List(f.has))
		}
	}
}

// TestPlacesComeToRest: whatever pods there are and whichever of them have a place: dead ones give theirs up at once, never more than one
// other changes hands in a pass, and in the end, which comes soon, no zone has two places less than it could have.
func TestPlacesComeToRest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 15)) //nolint:gosec // stories that repeat
		var backends []Backend
		for i := range 1 + random.IntN(4) {
			backends = append(backends, inZone(string(rune('a'+i)), 0, 1+random.IntN(12), 1+random.IntN(8))...)
		}
		f := &fullBalancer{t: t, quota: 1 + random.IntN(len(backends)), swaps: seed%2 == 0, has: sets.New[string]()}
		for _, i := range random.Perm(len(backends))[:f.quota] {
			f.has.Insert(backends[i].ID)
			if backends[i].Weight += random.IntN(8); random.IntN(3) == 0 {
				f.has.Delete(backends[i].ID)
				f.has.Insert("dead" + backends[i].ID)
			}
		}
		dead := f.dead()
		for passes := 0; f.pass(backends); passes++ {
			if f.dead() > 0 || f.left > max(dead, 1) || passes > 6*len(backends) {
				t.Fatalf("seed %d, pass %d: %d leave, %v are there", seed, passes, f.left, sets.List(f.has))
			}
			dead = 0
		}
		if len(f.has) != min(f.quota, len(backends)) {
			t.Errorf("seed %d: %d of %d places are taken", seed, len(f.has), f.quota)
		}
		f.checkZones(seed, backends)
	}
}

func (f *fullBalancer) dead() int {
	n := 0
	for id := range f.has {
		if strings.HasPrefix(id, "dead") {
			n++
		}
	}
	return n
}

func (f *fullBalancer) checkZones(seed uint64, backends []Backend) {
	f.t.Helper()
	have, all := f.zones(backends), map[string]int{}
	for i := range backends {
		all[backends[i].Zone]++
	}
	for zone, n := range all {
		for other := range all {
			if have[zone] < n && have[other] >= have[zone]+2 {
				f.t.Errorf("seed %d: zone %s has %d of %d, zone %s %d", seed, zone, have[zone], n, other, have[other])
			}
		}
	}
}

// TestFullInDoubt: on a full load balancer, backends that may not leave because the set may be incomplete keep their places, and nothing
// comes that the cloud would refuse. One that works does not leave for them, and the last one goes on to take traffic although its node is
// about to be deleted.
func TestFullInDoubt(t *testing.T) {
	t.Parallel()
	old, pod := inZone("a", 0, 1, 10)[0], Backend{Kind: KindInterface, ID: "eni-1", IP: "10.0.0.1", Weight: 10}
	wanted := inZone("b", 0, 1, 10)
	isOld, isWanted := Entry{Kind: KindInstance, ID: old.ID}, Entry{Kind: KindInstance, ID: wanted[0].ID}
	isGone, isHeld := Entry{Kind: KindInstance, ID: "i-gone"}, Entry{Kind: KindInterface, ID: "10.0.0.9"}
	drains, known := []Backend{old}, sets.New(old.ID, wanted[0].ID)
	for name, test := range map[string]struct {
		quota, groups int
		has           []Entry
		set           Set
		stay          int
	}{
		"sure":                              {1, 1, []Entry{isOld}, Set{Backends: wanted}, 1},
		"sure, drains":                      {1, 1, []Entry{isOld}, Set{Backends: wanted, Draining: drains}, 1},
		"incomplete":                        {1, 1, []Entry{isOld}, Set{Backends: wanted, Doubt: true}, 0},
		"incomplete, has it":                {1, 1, []Entry{isWanted}, Set{Backends: wanted, Doubt: true}, 1},
		"incomplete, drains":                {1, 1, []Entry{isOld}, Set{Backends: wanted, Draining: drains, Doubt: true}, 0},
		"incomplete, is known to leave":     {1, 1, []Entry{isOld}, Set{Backends: wanted, Draining: drains, Doubt: true, Gone: known}, 1},
		"incomplete, less room than before": {2, 2, []Entry{isGone, isWanted}, Set{Backends: wanted, Doubt: true, Gone: known}, 1},
		"incomplete, the last one drains":   {2, 1, []Entry{isGone, isOld}, Set{Backends: wanted, Draining: drains, Doubt: true, Gone: known}, 1},
		"pod that is not ready":             {1, 1, []Entry{isHeld}, Set{Backends: wanted, Held: sets.New(isHeld.ID)}, 0},
		"pod, less room than before": {2, 2, []Entry{isHeld, {Kind: KindInterface, ID: pod.IP}},
			Set{Backends: []Backend{pod}, Held: sets.New(isHeld.ID)}, 1},
		"pod that ends": {1, 1, []Entry{{Kind: KindInterface, ID: pod.IP}}, Set{Backends: wanted, Draining: []Backend{pod}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, r := test.set, fullResolver(test.quota, test.groups, test.has, true)
			r.dropDraining(&set, "this")
			r.fitRoom(&set, "this")
			if len(set.Backends) != test.stay || len(set.Draining) > 0 {
				t.Errorf("%d backends, want %d, and %d drain", len(set.Backends), test.stay, len(set.Draining))
			}
		})
	}
}

// TestOneComesBesideThoseThatDrain: where the product does not replace backends in one call, one is asked for also if those that drain have
// all places. Where the cloud refuses it, they go on to take traffic.
func TestOneComesBesideThoseThatDrain(t *testing.T) {
	t.Parallel()
	drain := inZone("a", 0, 2, 10)
	set := Set{Backends: inZone("b", 0, 2, 10), Draining: drain}
	r := fullResolver(2, 1, []Entry{{Kind: KindInstance, ID: drain[0].ID}, {Kind: KindInstance, ID: drain[1].ID}}, false)
	r.fitRoom(&set, "this")
	if len(set.Backends) != 1 {
		t.Errorf("%d backends, want 1", len(set.Backends))
	}
}

// fullResolver returns a resolver for a load balancer that has entries in the group.
func fullResolver(quota, groups int, entries []Entry, swaps bool) *Resolver {
	has := slices.Clone(entries)
	for i := range has {
		has[i].Ours, has[i].Group = true, "this"
	}
	room := RoomOf(quota, false, groups, slices.Values(has))
	room.Swaps = swaps
	return &Resolver{in: Input{Facts: Facts{Choice: Choice{Room: room}}}}
}
