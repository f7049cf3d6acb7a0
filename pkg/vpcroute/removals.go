package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Bounds of the removal of routes whose node is gone while their instance may still run. They only matter when something is
// wrong: an API server that lost its data shows few or no Nodes while all pods run on.
const (
	// startGrace is how long this program leaves entries alone whose node it has never seen: a node may be about to register.
	startGrace = time.Minute
	// surplusGrace is how long a route must have been without a node: of nodes that go all at once, the first pass may see only some
	// to be gone.
	surplusGrace = 5 * time.Second
	// movedGrace is how long a route stays whose machine has been registered again with other pod CIDRs, beside many others: pods of the
	// old ones may still run there.
	movedGrace = 3 * time.Minute
	// removalInterval is the time in which at most [removalCap] routes go.
	removalInterval = 10 * time.Minute
)

// removalCap is how many of so many routes may go within [removalInterval] without a proof that their instance is gone: a tenth,
// at least 5, but never more than a third.
func removalCap(routes int) int { return max(1, min(max(5, routes/10), routes/3)) }

// removals decides which entries without a node may go. More of them at once than the cap allows are suspect, and so are all
// entries while there is no node at all: they stay until a node wants them again, or the cloud proves that the instance is gone, or its
// machine has a Node with other pod CIDRs. It decides by what it is given and what it remembers alone.
type removals struct {
	// absent are the routes without a node.
	absent map[route]absence
	// recent are the routes that went without a proof, and when.
	recent map[route]time.Time
}

type absence struct {
	since time.Time
	// suspended says that only a proof releases the route.
	suspended bool
}

func newRemovals() *removals {
	return &removals{absent: map[route]absence{}, recent: map[route]time.Time{}}
}

// decision is what may go now, and what has to wait.
type decision struct {
	// allowed are routes that may go, and whether they count against the cap.
	allowed map[route]bool
	// withheld are suspended routes.
	withheld sets.Set[route]
	// until is when the first routes that wait for a grace may go; zero for none.
	until time.Time
}

// surplusOf returns the routes without a node of all tables.
func surplusOf(plans []*plan) []route {
	surplus := sets.New[route]()
	for _, plan := range plans {
		for _, e := range plan.surplus {
			surplus.Insert(e.route())
		}
	}
	return slices.SortedFunc(maps.Keys(surplus), func(a, b route) int { return a.cidr.Compare(b.cidr) })
}

// removable returns the entries of the table that may go now.
func (p *plan) removable(d decision) []alicloud.RouteEntry {
	all := slices.Clone(p.replace)
	for _, e := range p.surplus {
		if _, ok := d.allowed[e.route()]; ok {
			all = append(all, e.RouteEntry)
		}
	}
	return all
}

// decide looks at the surplus routes, beside those that the nodes want.
func (r *removals) decide(surplus []route, nodes *desired, known evidence, now time.Time) decision {
	d := decision{allowed: map[route]bool{}, withheld: r.observe(surplus, nodes, known, now)}
	room := removalCap(len(nodes.routes)+len(surplus)) - len(r.recent)
	open := surplus
	if len(nodes.instances) > 0 {
		open = r.open(&d, surplus, nodes, known, now, &room)
	}
	tooMany := len(nodes.instances) == 0 || len(open)+len(d.withheld) > room
	for _, candidate := range open {
		grace := r.absent[candidate].since.Add(surplusGrace)
		switch {
		case tooMany:
			d.withheld.Insert(candidate)
		case now.Before(grace):
			d.until = earliest(d.until, grace)
		default:
			d.allowed[candidate] = true
		}
	}
	for each, absent := range r.absent {
		absent.suspended = d.withheld.Has(each)
		r.absent[each] = absent
	}
	return d
}

// observe notes since when routes have been without a node, and forgets what is over. It returns the suspended routes of which this pass
// knows nothing, because their table could not be read.
func (r *removals) observe(surplus []route, nodes *desired, known evidence, now time.Time) sets.Set[route] {
	read, unread := sets.New(surplus...), sets.New[route]()
	for old, absent := range r.absent {
		switch {
		case read.Has(old):
		case absent.suspended && nodes.routes[old.cidr].instance != old.instance && known.stands(old):
			unread.Insert(old)
		default:
			delete(r.absent, old)
		}
	}
	for _, each := range surplus {
		if _, ok := r.absent[each]; !ok {
			r.absent[each] = absence{since: now}
		}
	}
	maps.DeleteFunc(r.recent, func(_ route, at time.Time) bool { return now.Sub(at) >= removalInterval })
	return unread
}

// open decides about the routes of which something is known, and returns the others. room is how many may go without a proof.
func (r *removals) open(d *decision, surplus []route, nodes *desired, known evidence, now time.Time, room *int) (open []route) {
	grace := movedGrace
	if len(surplus) <= *room {
		grace = surplusGrace
	}
	for _, candidate := range surplus {
		_, begun := r.recent[candidate] // in another table
		absent, moved := r.absent[candidate], nodes.moved(candidate.instance)
		switch {
		case known.gone(candidate.instance), begun:
			d.allowed[candidate] = false
		case moved && now.Before(absent.since.Add(grace)):
			d.until = earliest(d.until, absent.since.Add(grace))
		case moved && *room > 0:
			d.allowed[candidate] = true
			*room--
		case moved:
			d.until = earliest(d.until, now.Add(removalInterval/5))
		case absent.suspended:
			d.withheld.Insert(candidate)
		case !known.former(candidate) && now.Before(absent.since.Add(startGrace)):
			d.until = earliest(d.until, absent.since.Add(startGrace))
		default:
			open = append(open, candidate)
		}
	}
	return open
}

// note remembers that a route went without a proof.
func (r *removals) note(gone route, now time.Time) { r.recent[gone] = now }

// moved reports whether the machine has a Node whose kubelet reports, with pod CIDRs: routes that it does not want any more are those of an
// earlier registration. No other proof would ever come, for the machine runs on.
func (d *desired) moved(instance string) bool {
	node := d.instances[instance]
	if node == nil || nodes.Condition(node, corev1.NodeReady) == nil || len(nodes.PodCIDRs(node)) == 0 {
		return false
	}
	_, silent := nodes.Silent(node)
	return !silent
}

// What it takes to prove that an instance is gone. The cloud's list of instances lags, may be cut short, and leaves out without a
// word what the key may not see.
const (
	goneAnswers = 3
	goneOver    = time.Minute
	// lookupInterval is the time between two answers.
	lookupInterval = goneOver / (goneAnswers - 1)
	// goneValid is how long an answer counts. Answers further apart are not consecutive.
	goneValid = 5 * time.Minute
	// maxControls is how many instances of nodes are asked for with each look-up.
	maxControls = 5
)

// sightings are what the cloud has shown of instances of doubtful entries.
type sightings map[string]sighting

// sighting counts the answers in a row that lacked an instance, none if the last one showed it.
type sighting struct {
	first, last time.Time
	missed      int
	// next is when the cloud is asked again: after a period for an instance that it shows, soon for one that it does not, for it takes
	// several answers to prove that it is gone.
	next time.Time
}

// note takes an answer in: the instances asked for, those that it showed, and whether it proves anything about the others.
func (s sightings) note(asked, shown sets.Set[string], proves bool, period time.Duration, now time.Time) {
	for id := range asked {
		seen := s[id]
		switch {
		case shown.Has(id):
			seen = sighting{next: now.Add(period)}
		case !proves:
			seen.next = now.Add(lookupInterval)
		case seen.missed == 0 || now.Sub(seen.last) >= goneValid:
			seen = sighting{first: now, last: now, missed: 1, next: now.Add(lookupInterval)}
		default:
			seen.last, seen.missed, seen.next = now, seen.missed+1, now.Add(lookupInterval)
		}
		s[id] = seen
	}
}

// gone reports whether the instance is proven gone.
func (s sightings) gone(id string, now time.Time) bool {
	seen := s[id]
	return seen.missed >= goneAnswers && seen.last.Sub(seen.first) >= goneOver && now.Sub(seen.last) < goneValid
}

// due returns which of the instances are to be asked for now, and when the first of the others is, zero for never. It forgets instances
// that are not in doubt and whose answers are too old to count.
func (s sightings) due(hops sets.Set[string], now time.Time) (due sets.Set[string], next time.Time) {
	maps.DeleteFunc(s, func(id string, seen sighting) bool { return !hops.Has(id) && now.Sub(seen.last) >= goneValid })
	due = sets.New[string]()
	for hop := range hops {
		if seen := s[hop]; now.Before(seen.next) {
			next = earliest(next, seen.next)
		} else {
			due.Insert(hop)
		}
	}
	return due, next
}

// doubtful returns the instances of entries that may only go once these are proven gone.
func (o *observation) doubtful() sets.Set[string] {
	hops := sets.New[string]()
	for _, plan := range o.plans {
		for _, e := range plan.unowned {
			hops.Insert(e.hop)
		}
	}
	for r := range o.removals.withheld {
		hops.Insert(r.instance)
	}
	return hops
}

// controlsOf returns instances of nodes, of ready ones first. An answer proves nothing unless it shows all of them.
func controlsOf(d *desired) []string {
	all := slices.SortedFunc(maps.Keys(d.instances), func(a, b string) int {
		readyA, readyB := nodes.Ready(d.instances[a]), nodes.Ready(d.instances[b])
		if readyA != readyB {
			return map[bool]int{true: -1, false: 1}[readyA]
		}
		return strings.Compare(a, b)
	})
	return all[:min(len(all), maxControls)]
}

var errNoControl = errors.New("no node has an instance to compare with")

// ask asks the cloud for the instances, and for controls beside them. It returns those that the cloud shows. The error says why
// the answer proves nothing.
func (w *Writer) ask(ctx context.Context, d *desired, hops sets.Set[string]) (sets.Set[string], error) {
	controls := sets.New(controlsOf(d)...).Difference(hops)
	if controls.Len() == 0 {
		return nil, errNoControl
	}
	shown, err := shownOf(ctx, w.opts.API, alicloud.InstanceQuery{IDs: sets.List(hops.Union(controls))})
	if err != nil {
		return nil, fmt.Errorf("look up instances of routes: %w", err)
	}
	if !shown.IsSuperset(controls) {
		return shown.Intersection(hops), fmt.Errorf("look up instances of routes: DescribeInstances does not even show %v, which nodes have",
			sets.List(controls.Difference(shown)))
	}
	return shown.Intersection(hops), nil
}

// prove asks the cloud for the instances of which it is time, and remembers which of them it does not show. It reports whether
// it asked, and when it is time again.
func (w *Writer) prove(ctx context.Context, d *desired, hops sets.Set[string], now time.Time) (asked bool, next time.Time) {
	due, next := w.sightings.due(hops, now)
	if due.Len() == 0 || len(d.instances) == 0 { // without a node there is nothing to compare an answer with
		return false, next
	}
	shown, err := w.ask(ctx, d, due)
	if err != nil && !errors.Is(err, errNoControl) {
		klog.FromContext(ctx).Error(err, "Cannot determine whether the instances of routes are gone; keeping the routes", "instances", due.Len())
	}
	now = time.Now()
	w.sightings.note(due, shown, err == nil, w.opts.Config.Period, now)
	_, next = w.sightings.due(hops, now)
	return true, next
}
