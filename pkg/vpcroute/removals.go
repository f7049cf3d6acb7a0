package vpcroute

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Bounds of the removal of routes whose node is gone while their instance may still run. They only matter when something is
// wrong: an API server that lost its data shows few or no Nodes while all pods run on.
const (
	// startGrace is how long after its start this program leaves entries alone whose node it has never seen: a node may be
	// about to register.
	startGrace = time.Minute
	// surplusGrace is how long a route must have been without a node: of nodes that go all at once, the first pass may see only some
	// to be gone.
	surplusGrace = 5 * time.Second
	// removalInterval is the time in which at most [removalCap] routes go.
	removalInterval = 10 * time.Minute
)

// removalCap is how many of so many routes may go within [removalInterval] without a proof that their instance is gone: a tenth,
// at least 5, but never more than a third.
func removalCap(routes int) int { return max(1, min(max(5, routes/10), routes/3)) }

// removals decides which entries without a node may go. More of them at once than the cap allows are suspect, and so are all
// entries while there is no node at all: they stay until a node wants them again, or the cloud proves that the instance is gone.
// It decides by what it is given and what it remembers alone, and is safe for concurrent use.
type removals struct {
	started time.Time

	mu sync.Mutex // guards the fields below
	// suspended are routes that only a proof releases.
	suspended map[route]struct{}
	// since is when a route was first seen without a node.
	since map[route]time.Time
	// recent are the routes that went without a proof, and when.
	recent map[route]time.Time
}

func newRemovals(started time.Time) *removals {
	return &removals{started: started, suspended: map[route]struct{}{}, since: map[route]time.Time{}, recent: map[route]time.Time{}}
}

// decision is what may go now, and what has to wait.
type decision struct {
	// allowed are routes that may go, and whether they count against the cap.
	allowed map[route]bool
	// withheld are suspended routes.
	withheld map[route]struct{}
	// until is when the first routes that wait for a grace may go; zero for none.
	until time.Time
}

// counted reports whether the removal of the entry counts against the cap.
func (d decision) counted(e *alicloud.RouteEntry) bool {
	cidr, err := netip.ParsePrefix(e.CIDR)
	return err == nil && d.allowed[route{cidr: cidr.Masked(), instance: hopOf(e)}]
}

// surplusOf returns the routes without a node of all tables.
func surplusOf(plans []*plan) []route {
	surplus := map[route]struct{}{}
	for _, plan := range plans {
		for _, e := range plan.surplus {
			surplus[e.route()] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(surplus))
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
	r.mu.Lock()
	defer r.mu.Unlock()
	d := decision{allowed: map[route]bool{}, withheld: r.unread(surplus, nodes, known)}
	open := surplus
	if len(nodes.instances) > 0 {
		open = r.open(&d, surplus, known, now)
	}
	r.count(surplus, now)
	tooMany := len(nodes.instances) == 0 || len(open)+len(d.withheld) > removalCap(len(nodes.routes)+len(surplus))-r.used(now)
	for _, candidate := range open {
		grace := r.since[candidate].Add(surplusGrace)
		switch {
		case tooMany:
			d.withheld[candidate] = struct{}{}
		case now.Before(grace):
			d.wait(grace)
		default:
			d.allowed[candidate] = true
		}
	}
	r.suspended = d.withheld
	return d
}

// count notes since when routes have been without a node.
func (r *removals) count(surplus []route, now time.Time) {
	since := make(map[route]time.Time, len(surplus))
	for _, candidate := range surplus {
		since[candidate] = now
		if before, ok := r.since[candidate]; ok {
			since[candidate] = before
		}
	}
	r.since = since
}

// wait notes that a route may go at a time.
func (d *decision) wait(until time.Time) {
	if d.until.IsZero() || until.Before(d.until) {
		d.until = until
	}
}

// unread returns the suspended routes of which this pass knows nothing, because their table could not be read. What is wanted
// again or has no entry any more is suspended no longer.
func (r *removals) unread(surplus []route, nodes *desired, known evidence) map[route]struct{} {
	unread, read := map[route]struct{}{}, sets.New(surplus...)
	for old := range r.suspended {
		if nodes.routes[old.cidr].instance != old.instance && known.stands(old) && !read.Has(old) {
			unread[old] = struct{}{}
		}
	}
	return unread
}

// open decides about the routes of which something is known, and returns the others.
func (r *removals) open(d *decision, surplus []route, known evidence, now time.Time) (open []route) {
	for _, candidate := range surplus {
		_, suspended := r.suspended[candidate]
		_, begun := r.recent[candidate] // in another table
		switch {
		case known.gone(candidate.instance), begun:
			d.allowed[candidate] = false
		case suspended:
			d.withheld[candidate] = struct{}{}
		case !known.former(candidate) && now.Before(r.started.Add(startGrace)):
			d.wait(r.started.Add(startGrace))
		default:
			open = append(open, candidate)
		}
	}
	return open
}

// used counts the removals without a proof within the interval.
func (r *removals) used(now time.Time) int {
	maps.DeleteFunc(r.recent, func(_ route, at time.Time) bool { return now.Sub(at) >= removalInterval })
	return len(r.recent)
}

// note remembers that a route went without a proof.
func (r *removals) note(gone route, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent[gone] = now
}
