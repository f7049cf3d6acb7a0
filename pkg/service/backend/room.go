package backend

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Room is what a load balancer has room for.
type Room struct {
	// Most is how many backends each port of the Service may have, 0 for any number: the Quota of the load balancer, without the Others on it
	// that are not of the Service, divided by the Groups of the Service. Former groups are among these: they have the backends of the ports
	// that are to leave them.
	Most, Quota, Others, Groups int
	// Swaps says that the product replaces backends in one call. Otherwise one that is gone leaves before another one comes, where there is no
	// room for both.
	Swaps bool
	// Share is how many nodes each port of a Service with externalTrafficPolicy Cluster gets on a load balancer that Services share, 0 for any
	// number. Those that it has more than that stay.
	Share int
	// unknown says that others may have more than that.
	unknown bool
	// ours is how many backends the Service has in all groups together, former how many of the Groups are former ones.
	ours, former int
	entries      iter.Seq[Entry]
}

// Entry is one backend of one group of a load balancer: an instance by its ID, or a pod by its address.
type Entry struct {
	Kind Kind
	ID   string
	// Ours says that it is one of the Service.
	Ours bool
	// Group is how the Service marks the backends of the port that this one is for: the ports of a Service may have pods on different nodes.
	Group string
	// Idle says that no listener sends to the group, and that it does not count for the quota before one does.
	Idle bool
	// Former says that no port is to use the group, but has to until there is room for another one.
	Former bool
}

// RoomOf returns the room on a load balancer for a Service with so many groups, without former ones. A quota that is only assumed is larger
// if the load balancer has more.
func RoomOf(quota int, assumed bool, groups int, entries iter.Seq[Entry]) Room {
	room := Room{Quota: quota, Groups: max(groups, 1), entries: entries}
	counted, former := 0, sets.New[string]()
	for entry := range entries {
		if !entry.Idle {
			counted++
		}
		if entry.Ours {
			room.ours++
		} else {
			room.Others++
		}
		if entry.Ours && entry.Former {
			former.Insert(entry.Group)
		}
	}
	room.former = former.Len()
	room.Groups += room.former
	if quota == 0 || assumed && counted > quota {
		return room
	}
	room.Most = max((quota-room.Others)/room.Groups, 1)
	return room
}

// Divide has the room be that of a load balancer on which other Services have so many backends, each port with a share. What the Service
// has there stays. While it is not known how many all others have, none takes the place of another one.
func (r *Room) Divide(others, share int, known bool) {
	r.Share, r.Others, r.unknown = share, r.Others+others, !known
	if r.Most == 0 {
		return
	}
	r.Most = max((r.Quota-r.Others)/r.Groups, 1)
	if r.former == 0 {
		r.Most = max(r.Most, r.largestGroup())
	}
}

// presentOfKind returns the backends of a kind that the Service has: IDs of instances, or addresses of pods.
func (r *Room) presentOfKind(kind Kind) sets.Set[string] {
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
func (r *Room) Instances() sets.Set[string] { return r.presentOfKind(KindInstance) }

// Times returns in how many groups the Service has each of its instances.
func (r *Room) Times() map[string]int {
	found := map[string]int{}
	for entry := range r.eachInstance {
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
	for entry := range r.eachInstance {
		if left--; times[entry.ID] == 0 {
			return false
		}
	}
	return left == 0
}

// HasMore reports whether the Service has an instance in more groups than that, see [Room.Times].
func (r *Room) HasMore(times map[string]int) bool {
	for id, n := range r.Times() {
		if n > times[id] {
			return true
		}
	}
	return false
}

// eachInstance iterates over the instances that the Service has, once for each group.
func (r *Room) eachInstance(yield func(Entry) bool) {
	if r.entries == nil {
		return
	}
	for entry := range r.entries {
		if entry.Ours && entry.Kind == KindInstance && !yield(entry) {
			return
		}
	}
}

// largestGroup returns how many backends the Service has in the largest of its groups.
func (r *Room) largestGroup() int {
	if r.entries == nil {
		return 0
	}
	most, sizes := 0, map[string]int{}
	for entry := range r.entries {
		if entry.Ours {
			sizes[entry.Group]++
			most = max(most, sizes[entry.Group])
		}
	}
	return most
}

// HasSpare reports whether the Service, which has so many instances, may have one more backend in each of its groups until another one has
// left, or needs no room for that. A group that has not got all of them yet needs its room for those.
func (r *Room) HasSpare(instances int) bool {
	return r.Swaps || r.Most == 0 || !r.unknown && instances < r.Most && r.ours <= (r.Most-1)*r.Groups
}

// inGroup iterates over the backends that the Service has in a group.
func (r *Room) inGroup(group string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if r.entries == nil {
			return
		}
		for entry := range r.entries {
			if entry.Ours && entry.Group == group && !yield(entry) {
				return
			}
		}
	}
}

// registeredCount returns how many backends the Service has in a group.
func (r *Room) registeredCount(group string) int {
	n := 0
	for range r.inGroup(group) {
		n++
	}
	return n
}

// freePlaces returns how many more backends a group may have before others have left.
func (r *Room) freePlaces(group string) int {
	return min(r.Most-r.registeredCount(group), r.Most*r.Groups-r.ours)
}

// GroupsOf returns how many groups the ports of a Service have: ports with the same key share one.
func GroupsOf(ports []corev1.ServicePort, key func(corev1.ServicePort) string) int {
	groups := sets.New[string]()
	for _, port := range ports {
		groups.Insert(key(port))
	}
	return len(groups)
}
