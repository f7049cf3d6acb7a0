package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Writer is the one place that reads and changes the route tables of a VPC, and remembers what they hold, so that an event costs
// writes only. It has no goroutine of its own.
type Writer struct {
	opts Options
	// slot holds one token. Whoever uses the fields below or calls the cloud takes it first: the cloud carries out one batch per VPC
	// at a time, and whoever waits finds the work of the one before done.
	slot chan struct{}

	network network
	// ipv6 says that a node has an IPv6 pod CIDR, for programs that do not know the cluster CIDR.
	ipv6 bool
	pace pace
	// tables are those that were read or were to be read, by id.
	tables    map[string]*table
	choice    tableChoice
	former    map[route]struct{} // routes of nodes since the start, while there is an entry for them
	sightings sightings
	removals  *removals
	retries   retries
	full      fullTables
}

// NewWriter returns the writer of one VPC. It makes no call; it asks for the node informer and does not wait for it.
func NewWriter(opts Options) *Writer {
	registerMetrics()
	opts.Nodes.Informer()
	return &Writer{
		opts: opts.withDefaults(), slot: make(chan struct{}, 1), network: newNetwork(opts), tables: map[string]*table{},
		former: map[route]struct{}{}, sightings: sightings{}, removals: newRemovals(), retries: newRetries(), full: fullTables{},
	}
}

func (w *Writer) take(ctx context.Context) error {
	select {
	case w.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Writer) release() { <-w.slot }

// observation is what the nodes want, what the managed tables hold, and the difference.
type observation struct {
	*desired
	Selection
	// tables are the managed ones, also those that cannot be read, and plans what is to be done in each.
	tables []*table
	plans  []*plan
	// removals says which entries without a node may go.
	removals decision
	// retry is when something is to be asked again; zero for never.
	retry time.Time
}

// observe compares what the nodes want with the managed tables as they were at notBefore or later. Where an entry may only go with a
// proof that its instance is gone, it asks the cloud for one.
func (w *Writer) observe(ctx context.Context, d *desired, notBefore time.Time) (*observation, error) {
	selection, err := w.choose(ctx, d)
	o := &observation{desired: d, Selection: selection}
	if err != nil {
		return o, err
	}
	for _, id := range selection.IDs {
		t := w.read(ctx, id, notBefore)
		o.tables = append(o.tables, t)
		o.retry = earliest(o.retry, t.retry)
	}
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	w.learn(d)
	w.compare(o, time.Now())
	asked, next := w.prove(ctx, d, o.doubtful(), time.Now())
	if asked {
		w.compare(o, time.Now())
	}
	o.retry = earliest(o.retry, next, o.removals.until)
	return o, nil
}

// takeAndObserve takes the slot, which the caller releases unless there is an error, and observes. It fails when no table can be read.
func (w *Writer) takeAndObserve(ctx context.Context, notBefore time.Time) (o *observation, err error) {
	if err = w.take(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.release()
		}
	}()
	d, err := w.desired(ctx)
	if err != nil {
		return nil, err
	}
	if o, err = w.observe(ctx, d, notBefore); err != nil {
		return nil, err
	}
	return o, o.unread()
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
	known := w.vSwitches(ctx, vSwitchTTL)
	if d.wantsIPv6() {
		w.ipv6 = true
		if !known.hasIPv6() {
			d.giveUpIPv6(w.opts.Config.VPCID)
		}
	}
	return d, nil
}

// compare makes the plan of each table, and decides which entries without a node may go.
func (w *Writer) compare(o *observation, now time.Time) {
	w.compareWith(o, w.evidence(now), w.removals, now)
}

func (w *Writer) compareWith(o *observation, known evidence, removals *removals, now time.Time) {
	o.plans = make([]*plan, len(o.tables))
	for i, t := range o.tables {
		if o.plans[i] = (&plan{table: t.id, unread: true}); t.err == nil {
			o.plans[i] = diff(o.desired, t, w.opts.Config, known)
		}
	}
	o.removals = removals.decide(surplusOf(o.plans), o.desired, known, now)
}

// unread returns why none of the tables could be read, nil if one could.
func (o *observation) unread() (err error) {
	for _, t := range o.tables {
		if t.err == nil {
			return nil
		}
		err = t.err
	}
	return err
}

// evidence returns what is known beside the tables, at a time.
func (w *Writer) evidence(now time.Time) evidence {
	return evidence{
		former: func(r route) bool { _, ok := w.former[r]; return ok },
		gone:   func(instance string) bool { return w.sightings.gone(instance, now) },
		stands: w.hasEntry,
		occupant: func(key routeKey) *entry {
			if failed := w.retries.failures[key]; now.Before(failed.until) {
				return failed.occupant
			}
			return nil
		},
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
		if e, ok := t.entries[r.cidr]; ok && e.hop == r.instance {
			return true
		}
	}
	return false
}

// carryOut makes the changes, sets the error of each, nil for one that is done or that the cloud accepted, and remembers what failed. It
// returns those that were tried, and, if others were not, when they can be.
func (w *Writer) carryOut(ctx context.Context, d *desired, changes []*change) (tried []*change, retry time.Time) {
	d.name(changes)
	w.execute(ctx, changes)
	now := time.Now()
	taken := map[string][]string{} // CIDRs by table
	for _, c := range changes {
		if errors.Is(c.err, errPostponed) {
			retry = now.Add(w.pace.delay(now))
			continue
		}
		tried = append(tried, c)
		observeChange(c)
		key := routeKey{c.table(), c.route().cidr}
		switch {
		case ctx.Err() != nil:
		case c.remove != nil:
			if c.err == nil && !c.proven {
				w.removals.note(c.route(), now)
			}
		case c.err == nil:
			delete(w.retries.failures, key)
		case alicloud.IsQuota(c.err):
			w.full.refused(key.table, w.tables[key.table].custom, c.err, now)
		default:
			c.failure = w.retries.failed(key, c.create.InstanceID, c.err, now)
			if alicloud.IsDuplicate(c.err) {
				taken[key.table] = append(taken[key.table], c.create.CIDR)
			}
		}
	}
	for table, cidrs := range taken {
		w.lookUp(ctx, table, cidrs)
	}
	return tried, retry
}

// refusal returns why a route that is missing was not made, nil for no known reason.
func (w *Writer) refusal(key routeKey) error {
	if _, made := w.tables[key.table].entries[key.cidr]; made {
		return nil
	}
	if failed, ok := w.retries.failures[key]; ok {
		return failed.err
	}
	return w.full[key.table].err
}

// forgetFailures makes everything due that failed.
func (w *Writer) forgetFailures() {
	for _, t := range w.tables {
		t.retry, t.attempts = time.Time{}, 0
	}
	w.choice.retry, w.choice.attempts = time.Time{}, 0
	w.network.retry()
	w.retries, w.full = newRetries(), fullTables{}
}

// node returns the node of the cache, nil when there is none.
func (w *Writer) node(name string) *corev1.Node {
	node, err := w.opts.Nodes.Lister().Get(name)
	if err != nil {
		return nil
	}
	return node
}

// change is one entry to create or to remove.
type change struct {
	create *alicloud.NewRoute
	remove *alicloud.RouteEntry
	// node is the Node whose pod CIDR it is, empty where there is none any more.
	node string
	// proven says that a removal does not count against the cap of removals.
	proven bool
	err    error
	// failure is what is known of a creation that failed.
	failure failure
}

func (c *change) table() string {
	if c.create != nil {
		return c.create.TableID
	}
	return c.remove.TableID
}

func (c *change) route() route {
	var text, instance string
	if c.create != nil {
		text, instance = c.create.CIDR, c.create.InstanceID
	} else {
		text, instance = c.remove.CIDR, hopOf(c.remove)
	}
	return route{cidr: netip.MustParsePrefix(text).Masked(), instance: instance}
}

func (c *change) String() string {
	verb := "create"
	if c.remove != nil {
		verb = "delete"
	}
	return fmt.Sprintf("%s route %s to %s in %s", verb, c.route().cidr, c.route().instance, c.table())
}
