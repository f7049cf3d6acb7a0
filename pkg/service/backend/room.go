package backend

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Room is what a load balancer has room for.
type Room struct {
	// Most is how many backends each port of the Service may have, 0 for any number: the Quota of the load balancer, without the Others on it that are not
	// of the Service, divided by the Groups of the Service.
	Most, Quota, Others, Groups int
	// Swaps says that the product replaces backends in one call. Otherwise one that is gone leaves before another one comes, where there is no room for both.
	Swaps bool
	// ours is how many backends the Service has in all groups together.
	ours    int
	entries iter.Seq[Entry]
}

// Entry is one backend of one group of a load balancer: an instance by its ID, or a pod by its address.
type Entry struct {
	Kind Kind
	ID   string
	// Ours says that it is one of the Service.
	Ours bool
}

// RoomOf returns the room on a load balancer for a Service with so many groups. A quota that is only assumed is larger if the load balancer has more.
func RoomOf(quota int, assumed bool, groups int, entries iter.Seq[Entry]) Room {
	room := Room{Quota: quota, Groups: max(groups, 1), entries: entries}
	for entry := range entries {
		if entry.Ours {
			room.ours++
		} else {
			room.Others++
		}
	}
	if quota == 0 || assumed && room.ours+room.Others > quota {
		return room
	}
	room.Most = max((quota-room.Others)/room.Groups, 1)
	return room
}

// present returns the backends of a kind that the Service has: IDs of instances, or addresses of pods.
func (r *Room) present(kind Kind) sets.Set[string] {
	found := sets.New[string]()
	if r.entries == nil {
		return found
	}
	for entry := range r.entries {
		if entry.Ours && entry.Kind == kind {
			found.Insert(entry.ID)
		}
	}
	return found
}

// Instances are the instances that the Service has as backends.
func (r *Room) Instances() sets.Set[string] { return r.present(KindInstance) }

// Times returns in how many groups the Service has each of its instances.
func (r *Room) Times() map[string]int {
	found := map[string]int{}
	for entry := range r.instances {
		found[entry.ID]++
	}
	return found
}

// Has reports whether the Service has those instances, as many times together, that [Room.Times] has returned before. It allocates nothing.
func (r *Room) Has(times map[string]int) bool {
	left := 0
	for _, n := range times {
		left += n
	}
	for entry := range r.instances {
		if left--; times[entry.ID] == 0 {
			return false
		}
	}
	return left == 0
}

// instances iterates over the instances that the Service has, once for each group.
func (r *Room) instances(yield func(Entry) bool) {
	if r.entries == nil {
		return
	}
	for entry := range r.entries {
		if entry.Ours && entry.Kind == KindInstance && !yield(entry) {
			return
		}
	}
}

// HasSpare reports whether the Service may have one more backend in each of its groups until another one has left, or needs no room for that.
func (r *Room) HasSpare() bool { return r.Swaps || r.Most == 0 || r.ours <= (r.Most-1)*r.Groups }

// GroupsOf returns how many groups the ports of a Service have: ports with the same key share one.
func GroupsOf(ports []corev1.ServicePort, key func(corev1.ServicePort) string) int {
	groups := sets.New[string]()
	for _, port := range ports {
		groups.Insert(key(port))
	}
	return len(groups)
}

// fit leaves backends out that the load balancer has no room for. Those that it has stay; others come by their weight, from the zone that has the fewest.
// Where pods decide which nodes are backends nothing else can be done, and the user has to know.
func (r *Resolver) fit(set *Set) []problem.Problem {
	room := &r.in.Choice.Room
	all := len(set.Backends)
	if room.Most == 0 || set.Len()+len(set.Draining) <= room.Most {
		return nil
	}
	has := room.holder()
	most := room.Most - len(set.Alike.nodes)
	for i := range set.Draining {
		if has(&set.Draining[i]) {
			most--
		}
	}
	if all <= most {
		return nil
	}
	set.Backends = within(set.Backends, max(most, 0), has)
	return []problem.Problem{problem.Newf(problem.ReasonQuotaReached,
		"%d of %d backends of a port get no traffic: the load balancer can have %d in all its groups, the Service has %d groups there, and others have %d backends; raise the quota, use an NLB, or distribute the pods over several Services",
		all-len(set.Backends), all, room.Quota, room.Groups, room.Others)}
}

// holder returns what says of a backend whether the Service has it.
func (r *Room) holder() func(*Backend) bool {
	instances, pods := r.present(KindInstance), r.present(KindInterface)
	return func(b *Backend) bool {
		if b.Kind == KindInstance {
			return instances.Has(b.ID)
		}
		return pods.Has(b.IP)
	}
}

// ranked is a backend with its place among all.
type ranked struct {
	at  int
	has bool
	*Backend
}

// within returns so many of the backends, in their order.
func within(backends []Backend, most int, has func(*Backend) bool) []Backend {
	zones, kept := map[string][]ranked{}, map[string]int{}
	for i := range backends {
		b := ranked{i, has(&backends[i]), &backends[i]}
		zones[b.Zone] = append(zones[b.Zone], b)
		if b.has {
			kept[b.Zone]++
		}
	}
	share(zones, kept, most)
	var stay []ranked
	for name, of := range zones {
		slices.SortFunc(of, func(a, b ranked) int {
			switch {
			case a.has && !b.has:
				return -1
			case b.has && !a.has:
				return 1
			}
			return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.at, b.at))
		})
		stay = append(stay, of[:kept[name]]...)
	}
	slices.SortFunc(stay, func(a, b ranked) int { return cmp.Compare(a.at, b.at) })
	fitting := make([]Backend, 0, len(stay))
	for _, b := range stay {
		fitting = append(fitting, *b.Backend)
	}
	return fitting
}

// share changes how many backends each zone keeps until they are so many together.
func share(zones map[string][]ranked, kept map[string]int, most int) {
	names := slices.Sorted(maps.Keys(zones))
	fewest := func(a, b string) int { return cmp.Compare(kept[a], kept[b]) }
	total := 0
	for _, n := range kept {
		total += n
	}
	for ; total > most; total-- {
		kept[slices.MaxFunc(names, fewest)]--
	}
	for ; total < most; total++ {
		open := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return kept[name] == len(zones[name]) })
		kept[slices.MinFunc(open, fewest)]++
	}
}
