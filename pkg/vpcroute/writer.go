package vpcroute

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Writer is the one place that reads and changes the route tables of a VPC, and remembers what they hold, so that an event costs
// writes only. It has no goroutine of its own.
type Writer struct {
	opts Options
	// turn is taken by whoever uses the fields below or calls the cloud, which carries out one batch per VPC at a time.
	turn *semaphore.Weighted

	network network
	// ipv6 says that a node has an IPv6 pod CIDR, for programs that do not know the cluster CIDR.
	ipv6 bool
	pace pace
	// tables are those that were read or were to be read, by id.
	tables    map[string]*table
	selected  Selection
	listed    time.Time          // when the selection was made from the list of tables
	former    map[route]struct{} // routes of nodes since the start, while there is an entry for them
	sightings sightings
	removals  *removals
	retries   retries
}

// NewWriter returns the writer of one VPC. It makes no call; it asks for the node informer and does not wait for it.
func NewWriter(opts Options) *Writer {
	registerMetrics()
	opts.Nodes.Informer()
	return &Writer{
		opts: opts.withDefaults(), turn: semaphore.NewWeighted(1),
		network: network{subnets: subnets{vSwitches: opts.VSwitches}, read: opts.VSwitchesRead}, tables: map[string]*table{},
		former: map[route]struct{}{}, sightings: sightings{}, removals: newRemovals(), retries: newRetries(),
		pace: pace{created: map[string]time.Time{}},
	}
}

// observation is what the nodes want, what the managed tables hold, and the difference.
type observation struct {
	*desired
	Selection
	// plans are what is to be done in each managed table, also in those that cannot be read.
	plans []*plan
	// removals says which entries without a node may go.
	removals decision
	// next is when the pass is to be made again although nothing happens; zero for never.
	next time.Time
}

// again asks for another pass at a time, never for zero.
func (o *observation) again(at time.Time) { o.next = earliest(o.next, at) }

// observe compares what the nodes want with the managed tables as they were at notBefore or later. Where an entry may only go with a
// proof that its instance is gone, it asks the cloud for one.
func (w *Writer) observe(ctx context.Context, d *desired, notBefore time.Time) (*observation, error) {
	selection, err := w.choose(ctx, d)
	o := &observation{desired: d, Selection: selection}
	if err != nil {
		return o, err
	}
	for _, id := range selection.IDs {
		w.read(ctx, d, id, notBefore)
		o.again(w.retries.until(readOf(id), time.Now()))
	}
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	w.learn(d)
	for again := true; again; again = w.prove(ctx, o) {
		now := time.Now()
		w.compare(o, w.evidence(now), w.removals, now)
	}
	o.again(o.removals.until)
	return o, nil
}

// takeAndObserve takes the turn, which the caller releases unless there is an error, and observes. It fails when no table can be read.
func (w *Writer) takeAndObserve(ctx context.Context, notBefore time.Time) (o *observation, err error) {
	if err = w.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	d, err := w.desired(ctx)
	if err == nil {
		o, err = w.observe(ctx, d, notBefore)
	}
	if err == nil {
		err = o.unread()
	}
	if err != nil {
		w.turn.Release(1)
	}
	return o, err
}

// earliest returns the first of the times, zero for none. Zero is no time.
func earliest(times ...time.Time) (first time.Time) {
	for _, at := range times {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// desired reads the nodes of the cache.
func (w *Writer) desired(ctx context.Context) (*desired, error) {
	all, err := w.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	d := desiredOf(all, w.opts.Config, w.opts.InstanceID, time.Now())
	for cidr := range d.routes {
		w.ipv6 = w.ipv6 || cidr.Addr().Is6()
	}
	w.readVSwitches(ctx, d.instances)
	if !w.network.hasIPv6() {
		d.giveUpIPv6(w.opts.Config.VPCID)
	}
	return d, nil
}

// compare makes the plan of each table, and decides which entries without a node may go.
func (w *Writer) compare(o *observation, known evidence, removals *removals, now time.Time) {
	o.plans = nil
	surplus := sets.New[route]()
	for _, id := range o.IDs {
		each := &plan{table: w.tables[id]}
		if each.err == nil {
			each = diff(o.desired, each.table, w.opts.Config, known)
		}
		o.plans = append(o.plans, each)
		for _, e := range each.surplus {
			surplus.Insert(e.route)
		}
	}
	o.removals = removals.decide(slices.SortedFunc(maps.Keys(surplus), byCIDR), o.desired, known, now)
}

// unread returns why none of the tables could be read, nil if one could.
func (o *observation) unread() (err error) {
	for _, plan := range o.plans {
		if plan.err == nil {
			return nil
		}
		err = plan.err
	}
	return err
}

// evidence returns what is known beside the tables, at a time.
func (w *Writer) evidence(now time.Time) evidence {
	return evidence{
		former: func(r route) bool { _, ok := w.former[r]; return ok },
		gone:   func(instance string) bool { return w.sightings.gone(instance, now) },
		stands: w.hasEntry,
	}
}

// learn remembers whose routes the desired ones are. What is wanted no longer is forgotten with its last entry.
func (w *Writer) learn(d *desired) {
	for old := range w.former {
		if d.routes[old.cidr].instance != old.instance && !w.hasEntry(old) {
			delete(w.former, old)
		}
	}
	for cidr, want := range d.routes {
		w.former[route{cidr: cidr, instance: want.instance}] = struct{}{}
	}
}

// hasEntry reports whether a table had an entry for the route when it was read last.
func (w *Writer) hasEntry(r route) bool {
	for _, t := range w.tables {
		if e, ok := t.entries[r.cidr]; ok && e.route == r {
			return true
		}
	}
	return false
}

// refusal returns why a route that is missing was not made, nil for no known reason.
func (w *Writer) refusal(key routeKey) error {
	if _, made := w.tables[key.table].entries[key.cidr]; made {
		return nil
	}
	return cmp.Or(w.retries.failures[key].err, w.retries.failures[fullTable(key.table)].err)
}
