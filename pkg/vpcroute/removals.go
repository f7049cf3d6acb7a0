package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/absence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// removalCap is how many of so many routes may go within [waits.RoutesInTurn] while their instances may still run: a tenth, at least 5, but
// never more than a third. It only matters when something is wrong: an API server that lost its data shows few Nodes while all pods run on.
func removalCap(routes int) int { return max(1, min(max(5, routes/10), routes/3)) }

// removals decides which entries without a node may go. More of them at once than the cap allows are suspect, and so are all
// entries while there is no node at all: they stay until a node wants them again, or the cloud proves that the instance is gone, or its
// machine has a Node with other pod CIDRs. It decides by what it is given and what it remembers alone.
type removals struct {
	// absent are the routes without a node.
	absent map[route]nodeless
	// recent are the routes that went without a proof, and when.
	recent map[route]time.Time
}

// nodeless is a route without a node.
type nodeless struct {
	since time.Time
	// suspended says that only a proof releases the route.
	suspended bool
}

func newRemovals() *removals {
	return &removals{absent: map[route]nodeless{}, recent: map[route]time.Time{}}
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

// removable returns the removals from the table that may be made now.
func (p *plan) removable(d decision) (changes []*change) {
	for _, e := range p.replace {
		changes = append(changes, &change{table: p.id, route: e.route, remove: &e, proven: true})
	}
	for _, e := range p.surplus {
		if counts, ok := d.allowed[e.route]; ok {
			changes = append(changes, &change{table: p.id, route: e.route, remove: &e, proven: !counts})
		}
	}
	return changes
}

// decide looks at the surplus routes, beside those that the nodes want.
func (r *removals) decide(surplus []route, nodes *desired, known evidence, now time.Time) decision {
	d := decision{allowed: map[route]bool{}, withheld: r.observe(surplus, nodes, known, now)}
	var open []route
	for _, candidate := range surplus {
		_, begun := r.recent[candidate] // in another table
		absent, moved, proven := r.absent[candidate], nodes.moved(candidate.instance), begun || known.gone(candidate.instance)
		grace := waits.RouteWithoutNode
		switch {
		case moved:
			grace = waits.RouteMoved
		case !known.former(candidate):
			grace = waits.RouteAtStart
		}
		switch may := absent.since.Add(grace); {
		case len(nodes.instances) == 0, absent.suspended && !moved && !proven:
			d.withheld.Insert(candidate)
		case proven, moved && !now.Before(may):
			d.allowed[candidate] = false
		case moved, grace == waits.RouteAtStart && now.Before(may):
			d.until = earliest(d.until, may)
		default:
			open = append(open, candidate)
		}
	}
	tooMany := len(open)+len(d.withheld) > removalCap(len(nodes.routes)+len(surplus))-len(r.recent)
	for _, candidate := range open {
		switch may := r.absent[candidate].since.Add(waits.RouteWithoutNode); {
		case tooMany:
			d.withheld.Insert(candidate)
		case now.Before(may):
			d.until = earliest(d.until, may)
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
			r.absent[each] = nodeless{since: now}
		}
	}
	maps.DeleteFunc(r.recent, func(_ route, at time.Time) bool { return now.Sub(at) >= waits.RoutesInTurn })
	return unread
}

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

// goneRule is what it takes to prove that an instance is gone.
var goneRule = absence.Rule{Answers: 3, Over: time.Minute, Pause: 5 * time.Minute}

const (
	// lookupInterval is the time between two answers.
	lookupInterval = 30 * time.Second
	// maxControls is how many instances of nodes are asked for with each look-up.
	maxControls = 5
)

// sightings are what the cloud has shown of instances of doubtful entries.
type sightings map[string]sighting

// sighting is the row of answers that lacked an instance, none if the last one showed it.
type sighting struct {
	absence.Row
	// next is when the cloud is asked again: after a period for an instance that it shows, soon for one that it does not, for it takes
	// several answers to prove that it is gone.
	next time.Time
}

// note takes an answer in: the instances asked for, those that it showed, and whether it proves anything about the others.
func (s sightings) note(asked, shown sets.Set[string], proves bool, period time.Duration, now time.Time) {
	for id := range asked {
		seen := sighting{s[id].Row, now.Add(lookupInterval)}
		switch {
		case shown.Has(id):
			seen = sighting{next: now.Add(period)}
		case proves:
			seen.Row = seen.Lacking(now, goneRule)
		}
		s[id] = seen
	}
}

// gone reports whether the instance is proven gone, by answers that are not too old.
func (s sightings) gone(id string, now time.Time) bool {
	return s[id].Proves(goneRule) && now.Sub(s[id].Last) < goneRule.Pause
}

// due returns which of the instances are to be asked for now, and when the first of the others is, zero for never. It forgets instances
// that are not in doubt and whose answers are too old to count.
func (s sightings) due(hops sets.Set[string], now time.Time) (due sets.Set[string], next time.Time) {
	maps.DeleteFunc(s, func(id string, seen sighting) bool { return !hops.Has(id) && now.Sub(seen.Last) >= goneRule.Pause })
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
			hops.Insert(e.instance)
		}
	}
	for r := range o.removals.withheld {
		hops.Insert(r.instance)
	}
	return hops
}

// controlsOf returns instances of nodes, of ready ones first. An answer proves nothing unless it shows all of them.
func controlsOf(d *desired) []string {
	var ready, others []string
	for _, id := range slices.Sorted(maps.Keys(d.instances)) {
		if nodes.Ready(d.instances[id]) {
			ready = append(ready, id)
		} else {
			others = append(others, id)
		}
	}
	all := slices.Concat(ready, others)
	return all[:min(len(all), maxControls)]
}

// ask asks the cloud for the instances, and for controls beside them. It returns those that the cloud shows. The error says why
// the answer proves nothing.
func (w *Writer) ask(ctx context.Context, d *desired, hops sets.Set[string]) (sets.Set[string], error) {
	controls := sets.New(controlsOf(d)...).Difference(hops)
	if controls.Len() == 0 {
		return nil, errors.New("no node has an instance to compare with")
	}
	shown, err := shownOf(ctx, w.opts.API, alicloud.InstanceQuery{IDs: sets.List(hops.Union(controls))})
	if err == nil && !shown.IsSuperset(controls) {
		err = fmt.Errorf("DescribeInstances does not even show %v, which nodes have", sets.List(controls.Difference(shown)))
	}
	return shown.Intersection(hops), err
}

// prove asks the cloud for the instances of which it is time, and remembers which of them it does not show. It reports whether it asked.
func (w *Writer) prove(ctx context.Context, o *observation) bool {
	due, next := w.sightings.due(o.doubtful(), time.Now())
	if due.Len() == 0 || len(o.instances) == 0 { // without a node there is nothing to compare an answer with
		o.again(next)
		return false
	}
	shown, err := w.ask(ctx, o.desired, due)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot determine whether the instances of routes are gone; keeping the routes", "instances", due.Len())
	}
	w.sightings.note(due, shown, err == nil, w.opts.Config.Period, time.Now())
	return true
}
