package service

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// lack is which instances Services need that are backends as many times as the cloud lets them be. Its zero value is empty.
type lack struct {
	// times is how many times more an instance would be a backend, leaving how many times it is one that its Service has given up.
	times, leaving map[string]int
	// starving is how many of times are for Services that have no node.
	starving map[string]int
	// services lack something, many of them lack more than half of what they need, and some would have more nodes if they could.
	services, many, misses int
}

// count notes what a Service lacks and gives up, by 1, or does no more, by -1.
func (l *lack) count(held stake, by int) {
	if l.times == nil {
		l.times, l.leaving, l.starving = map[string]int{}, map[string]int{}, map[string]int{}
	}
	add(l.times, held.lacking, by*held.each)
	add(l.leaving, held.leaving, by*held.each)
	add(l.starving, held.starving, by*held.each)
	l.services += by * min(len(held.lacking), 1)
	if held.many {
		l.many += by
	}
	if held.misses {
		l.misses += by
	}
}

func add(times map[string]int, ids []string, n int) {
	for _, id := range ids {
		if times[id] += n; times[id] == 0 {
			delete(times, id)
		}
	}
}

// concerned returns the Services that may have to choose anew because of what a Service has and lacks now, and before.
func (c *crowd) concerned(before, after stake, settled bool) []types.NamespacedName {
	if settled && len(after.lacking) > 0 {
		return c.givers(after)
	}
	return c.freed(before, after)
}

// freed returns the Services that lack something, if a Service no longer has all of what it gave up.
func (c *crowd) freed(before, after stake) []types.NamespacedName {
	if c.lack.services == 0 || len(after.leaving) >= len(before.leaving) {
		return nil
	}
	var found []types.NamespacedName
	for _, held := range c.stakes {
		if len(held.lacking) > 0 {
			found = append(found, held.service)
		}
	}
	return found
}

// others returns all Services that have chosen but one. A pass in which one of them has chosen may be under way: it is due again after it.
func (c *crowd) others(except types.UID) []types.NamespacedName {
	var found []types.NamespacedName
	for uid, held := range c.stakes {
		if uid != except {
			found = append(found, held.service)
		}
	}
	return found
}

// lacked returns what a Service has to know of what the others lack. on is the load balancer that it shares, empty for one of its own.
func (c *crowd) lacked(on string) backend.Lack {
	if c.lack.services == 0 {
		return backend.Lack{Spared: c.spared}
	}
	return backend.Lack{
		Spared:   c.spared,
		Times:    func(id string) int { return c.lack.times[id] },
		Leaving:  func(id string) int { return c.lack.leaving[id] },
		Starving: func(id string) int { return c.lack.starving[id] },
		Stays:    func(id string) bool { return on != "" && c.attached.has(on, id) },
		Many:     c.lack.many > 0,
	}
}

// spared returns what says of an instance how many times the Services that have it can spare it, or can do without it for one that is
// starving. Where several Services on a load balancer have it, none of them can: it remains behind the load balancer for the others.
func (c *crowd) spared(starving bool) func(instanceID string) int {
	all, spared := 0, map[string]int{}
	for _, held := range c.stakes {
		switch {
		case !held.spares && (!starving || !held.yields):
		case held.whole:
			if !c.attached.shares(held.on, anyInstance) {
				all += held.each
				add(spared, c.attached.beside(held.on), -held.each)
			}
		default:
			for _, id := range held.ids {
				if !c.attached.shares(held.on, id) {
					spared[id] += held.each
				}
			}
		}
	}
	return func(id string) int { return all + spared[id] }
}

// givers returns the Services that have an instance of those that another one lacks, and can spare it, or do without it if that one has no
// node.
func (c *crowd) givers(to stake) []types.NamespacedName {
	lacked, starved := sets.New(to.lacking...), sets.New(to.starving...)
	var found []types.NamespacedName
	for _, held := range c.stakes {
		if held.spares && held.has(lacked) || held.yields && held.has(starved) {
			found = append(found, held.service)
		}
	}
	return found
}

// has reports whether a Service has one of the instances.
func (s stake) has(ids sets.Set[string]) bool {
	return ids.Len() > 0 && (s.whole || slices.ContainsFunc(s.ids, ids.Has))
}
