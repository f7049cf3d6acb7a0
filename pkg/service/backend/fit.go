package backend

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// dropDraining has backends leave a group at once that the load balancer has no room for beside those that take traffic, if none of these
// is in the group yet. They come in the same call: otherwise, the cloud would refuse them, and the group would drain its last backend. One
// that may not leave goes on to take traffic, see [Set.countStaying].
func (r *Resolver) dropDraining(set *Set, group string) {
	room := &r.in.Choice.Room
	if !room.Swaps || room.Most == 0 || set.Len() == 0 || len(set.Draining) == 0 {
		return
	}
	has, free := room.registeredIn(group), room.Most-set.Len()-set.countStaying(room.inGroup(group))
	for b := range set.All {
		if has(&b) {
			return
		}
	}
	set.Draining = slices.DeleteFunc(slices.Clone(set.Draining), func(b Backend) bool {
		if !has(&b) {
			return false
		}
		free--
		return free < 0
	})
}

// fitRoom leaves backends out of a group that the load balancer has no room for, see [places]. Where pods decide which nodes are backends
// nothing else can be done, and the user has to know, see [Resolver.Shortages].
func (r *Resolver) fitRoom(set *Set, group string) {
	room, all := &r.in.Choice.Room, len(set.Backends)
	if room.Most == 0 || all == 0 {
		return
	}
	staying, there := 0, 0
	if room.Swaps {
		staying = set.countStaying(room.inGroup(group))
	} else {
		there = room.registeredCount(group)
	}
	if set.Len()+len(set.Draining)+staying+there <= room.Most {
		return
	}
	has := room.registeredIn(group)
	most := room.mostOf(set, has, staying)
	r.limitPlaces(set, group, most, has)
	if all > most && staying == 0 {
		r.short.noteLeftOut(all-most, all)
	}
}

// mostOf returns how many of the backends of a group there is room for, beside those that are alike, those that drain and so many that
// stay.
func (r *Room) mostOf(set *Set, has func(*Backend) bool, staying int) int {
	kept, most := countBackends(set.Backends, has), max(r.Most-len(set.Alike.nodes)-countBackends(set.Draining, has), 0)
	switch {
	case r.Swaps: // those that stay keep others out, and have none leave
		return max(most-staying, min(most, kept))
	case kept == 0 && len(set.Alike.nodes) == 0: // if the cloud refuses one, those that are there do not drain
		return max(most, 1)
	}
	return most
}

func countBackends(backends []Backend, has func(*Backend) bool) int {
	n := 0
	for i := range backends {
		if has(&backends[i]) {
			n++
		}
	}
	return n
}

// countStaying returns how many of the backends that a group has stay beside those of the set: it may be incomplete.
func (s *Set) countStaying(registered iter.Seq[Entry]) int {
	if !s.Doubt && len(s.Held) == 0 {
		return 0
	}
	known, n := sets.New[string](), 0
	for b := range s.All {
		known.Insert(b.entryID())
	}
	for i := range s.Draining {
		known.Insert(s.Draining[i].entryID())
	}
	for entry := range registered {
		if !known.Has(entry.ID) && (s.Doubt && !s.Gone.Has(entry.ID) || s.Held.Has(entry.ID)) {
			n++
		}
	}
	return n
}

// entryID is the [Entry.ID] of a backend.
func (b *Backend) entryID() string {
	if b.Kind == KindInterface {
		return b.IP
	}
	return b.ID
}

// registeredIn returns what says of a backend whether the Service has it in a group.
func (r *Room) registeredIn(group string) func(*Backend) bool {
	held := sets.New(slices.Collect(r.inGroup(group))...)
	return func(b *Backend) bool {
		return held.Has(Entry{Kind: b.Kind, ID: b.entryID(), Ours: true, Group: group})
	}
}

// limitPlaces leaves all backends out of the set of a group but so many.
func (r *Resolver) limitPlaces(set *Set, group string, most int, has func(*Backend) bool) {
	room, p := &r.in.Choice.Room, newPlaces(set.Backends, has)
	most = min(most, len(set.Backends))
	free := room.freePlaces(group)
	switch {
	case p.total > most:
		p.shrinkTo(most)
	case p.total < most && room.Swaps:
		p.growTo(most)
	case p.total < most: // what is gone leaves first; without one that takes its place it would stay
		p.growTo(min(most, max(p.total+free, 1)))
	case most < len(set.Backends) && free >= 0 && !set.Doubt: // nothing else leaves
		set.Balances = p.movePlace(room.Swaps)
	}
	set.Backends = p.placedBackends()
}

// A backend takes the place of another one only where that makes a difference. Otherwise both would change places with each pod that comes
// or goes.
const (
	// apart is how many more places a zone has than the one to which it gives one.
	apart = 2
	// heavierTimes divided by heavierOf is how many times as many pods a backend has as the one of its zone whose place it takes, heavierBy
	// how many more.
	heavierTimes, heavierOf, heavierBy = 3, 2, 2
)

// ranked is a backend with its index among all.
type ranked struct {
	at  int
	has bool
	*Backend
}

// places are which backends get one of the places on a load balancer that has not enough of them: those that it has stay, others come by
// their weight, from the zone that has the fewest.
type places struct {
	names []string
	// zones are the backends of each zone, those first that it has, and of these and of the others those with more weight. The first kept of
	// them have a place.
	zones map[string][]ranked
	kept  map[string]int
	total int
}

func newPlaces(backends []Backend, has func(*Backend) bool) *places {
	p := &places{zones: map[string][]ranked{}, kept: map[string]int{}}
	for i := range backends {
		b := ranked{i, has(&backends[i]), &backends[i]}
		p.zones[b.Zone] = append(p.zones[b.Zone], b)
		if b.has {
			p.kept[b.Zone]++
			p.total++
		}
	}
	for _, of := range p.zones {
		slices.SortFunc(of, func(a, b ranked) int {
			switch {
			case a.has && !b.has:
				return -1
			case b.has && !a.has:
				return 1
			}
			return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.at, b.at))
		})
	}
	p.names = slices.Sorted(maps.Keys(p.zones))
	return p
}

// placedBackends returns those with a place, in their order.
func (p *places) placedBackends() []Backend {
	stay := make([]ranked, 0, p.total)
	for name, of := range p.zones {
		stay = append(stay, of[:p.kept[name]]...)
	}
	slices.SortFunc(stay, func(a, b ranked) int { return cmp.Compare(a.at, b.at) })
	fitting := make([]Backend, 0, len(stay))
	for _, b := range stay {
		fitting = append(fitting, *b.Backend)
	}
	return fitting
}

func (p *places) compareFewest(a, b string) int { return cmp.Compare(p.kept[a], p.kept[b]) }

// largestZone returns the zone with the most places.
func (p *places) largestZone() string { return slices.MaxFunc(p.names, p.compareFewest) }

// openZone returns the zone with the fewest places of those in which a backend has none.
func (p *places) openZone() string {
	open := slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return p.kept[name] == len(p.zones[name]) })
	return slices.MinFunc(open, p.compareFewest)
}

// shrinkTo takes places away until there are no more than so many.
func (p *places) shrinkTo(most int) {
	for ; p.total > most; p.total-- {
		p.kept[p.largestZone()]--
	}
}

// growTo gives places away until there are so many. There are more backends than that.
func (p *places) growTo(most int) {
	for ; p.total < most; p.total++ {
		p.kept[p.openZone()]++
	}
}

// movePlace has one backend give its place to another one: to one of a zone that has fewer places by at least two, else to one of its zone
// with many more pods. It reports whether it has found one. Each move brings zones, or in each zone the weights, closer to what they would
// be if all backends were new, so that moves come to an end. Where the product does not replace backends in one call, only the one leaves:
// [places.growTo] does not give the place back to it.
func (p *places) movePlace(swaps bool) bool {
	from, to := p.largestZone(), p.openZone()
	if p.kept[from] < p.kept[to]+apart {
		zone, ok := p.outweighedZone()
		if !ok || !swaps && p.total == 1 {
			return false
		}
		of, last := p.zones[zone], p.kept[zone]-1
		of[last], of[last+1] = of[last+1], of[last]
		from, to = zone, zone
	}
	p.kept[from]--
	if swaps {
		p.kept[to]++
	}
	return true
}

// outweighedZone returns the zone in which a backend without a place has many more pods than one with a place, the one where the difference
// is largest.
func (p *places) outweighedZone() (zone string, ok bool) {
	most := heavierBy - 1
	for _, name := range p.names {
		of, kept := p.zones[name], p.kept[name]
		if kept == 0 || kept == len(of) {
			continue
		}
		light, heavy := of[kept-1].Weight, of[kept].Weight
		if more := heavy - light; more > most && heavy*heavierOf >= light*heavierTimes {
			zone, ok, most = name, true, more
		}
	}
	return zone, ok
}
