package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Writer is the one place that reads and changes the route tables of a VPC. The cloud carries out one batch per VPC at a
// time and refuses a second one, so whatever is asked for while a call is in flight makes up the next batch. It remembers
// the tables, so that an event costs writes only. It has no goroutine of its own and is safe for concurrent use.
type Writer struct {
	opts    Options
	network *network
	// ipv6 says that a node has an IPv6 pod CIDR, for programs that do not know the cluster CIDR.
	ipv6 atomic.Bool
	// slot holds one token, which whoever calls the cloud takes.
	slot chan struct{}
	// rereads are the waits before what could not be read is read again, by table; "" is the list of tables.
	rereads workqueue.TypedRateLimiter[string]

	mu     sync.Mutex // guards the fields below
	pace   pace
	queue  []*change
	tables map[string]*table
	failed map[string]failedRead
	// vanished are tables that the cloud no longer has.
	vanished  map[string]bool
	choice    tableChoice
	former    map[route]struct{} // routes of nodes since the start, while there is an entry for them
	occupied  occupied
	sightings sightings
	removals  *removals
}

// change is one entry to create or to remove.
type change struct {
	create *alicloud.NewRoute
	remove *alicloud.RouteEntry
	ctx    context.Context //nolint:containedctx // that of the waiting caller, which may give up before its turn
	// node is the Node whose pod CIDR it is, empty where there is none any more.
	node string
	// proven says that a removal does not count against the cap of removals.
	proven bool
	err    error
	done   chan struct{}
}

func (c *change) table() string {
	if c.create != nil {
		return c.create.TableID
	}
	return c.remove.TableID
}

func (c *change) String() string {
	if c.create != nil {
		return fmt.Sprintf("create route %s to %s in %s", c.create.CIDR, c.create.InstanceID, c.create.TableID)
	}
	return fmt.Sprintf("delete route %s to %s in %s", c.remove.CIDR, hopOf(c.remove), c.remove.TableID)
}

// NewWriter returns the writer of one VPC. It makes no call; it asks for the node informer and does not wait for it.
func NewWriter(opts Options) *Writer {
	registerMetrics()
	opts.Nodes.Informer()
	return &Writer{
		opts: opts.withDefaults(), network: newNetwork(opts), slot: make(chan struct{}, 1), tables: map[string]*table{},
		rereads: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, maxBackoff),
		failed:  map[string]failedRead{}, vanished: map[string]bool{}, former: map[route]struct{}{}, occupied: occupied{}, sightings: sightings{},
		removals: newRemovals(time.Now()),
	}
}

// desired reads the nodes of the cache, and learns from them.
func (w *Writer) desired(ctx context.Context) (*desired, error) {
	all, err := w.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	d := desiredOf(all, w.opts.Config, w.opts.InstanceID, time.Now())
	known := w.network.current(ctx, vSwitchTTL)
	if d.wantsIPv6() {
		w.ipv6.Store(true)
		if !known.hasIPv6() {
			d.giveUpIPv6(w.opts.Config.VPCID)
		}
	}
	if w.opts.Config.usesNodeTables() {
		w.network.place(d.instances)
	}
	return d, nil
}

// observe returns what the nodes want and the managed tables as they were at notBefore or later.
func (w *Writer) observe(ctx context.Context, notBefore time.Time) (*desired, []reading, error) {
	d, err := w.desired(ctx)
	if err != nil {
		return nil, nil, err
	}
	selection, err := w.choose(ctx, d, w.choiceAge())
	if err != nil {
		return d, nil, err
	}
	return d, w.read(ctx, selection.IDs, notBefore), nil
}

// choiceAge is how old the choice of tables may be. It is less than the shortest time between two reads for drift.
func (w *Writer) choiceAge() time.Duration { return w.opts.Config.Period * 4 / 5 }

// evidence returns what is known beside the tables, at a time.
func (w *Writer) evidence(now time.Time) evidence {
	locked := func(read func() bool) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return read()
	}
	return evidence{
		former: func(r route) bool {
			return locked(func() bool { _, ok := w.former[r]; return ok })
		},
		gone:   func(instance string) bool { return locked(func() bool { return w.sightings.gone(instance, now) }) },
		stands: func(r route) bool { return locked(func() bool { return w.hasEntry(r) }) },
		occupied: func(key routeKey) (entry, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.occupied.at(key, w.opts.Config.Period, now)
		},
	}
}

// learn remembers whose routes the desired ones are. What is wanted no longer is forgotten with its last entry.
func (w *Writer) learn(d *desired) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for old := range w.former {
		if d.routes[old.cidr].instance != old.instance && !w.hasEntry(old) {
			delete(w.former, old)
		}
	}
	for cidr, want := range d.routes {
		w.former[route{cidr: cidr, instance: want.instance}] = struct{}{}
	}
}

// hasEntry reports whether a table that was read has an entry for the route. It is called with the lock held.
func (w *Writer) hasEntry(r route) bool {
	for _, t := range w.tables {
		if e, ok := t.entries[r.cidr]; ok && e.hop == r.instance {
			return true
		}
	}
	return false
}

// compare makes the plan of each table, and decides which entries without a node may go.
func (w *Writer) compare(d *desired, tables []*table, now time.Time) ([]*plan, decision) {
	known := w.evidence(now)
	plans := make([]*plan, len(tables))
	for i, t := range tables {
		plans[i] = diff(d, t, w.opts.Config, known)
	}
	return plans, w.removals.decide(surplusOf(plans), d, known, now)
}

// noteRemoval remembers a route that went although nothing proves that its instance is gone.
func (w *Writer) noteRemoval(c *change) {
	w.removals.note(route{cidr: netip.MustParsePrefix(c.remove.CIDR).Masked(), instance: hopOf(c.remove)}, time.Now())
}

// node returns the node of the cache, nil when there is none.
func (w *Writer) node(name string) *corev1.Node {
	node, err := w.opts.Nodes.Lister().Get(name)
	if err != nil {
		return nil
	}
	return node
}

// apply carries out the changes, deletions first, together with those of other callers. It sets the error of each change,
// nil for one that is done or that the cloud accepted.
func (w *Writer) apply(ctx context.Context, changes []*change) {
	if len(changes) == 0 {
		return
	}
	w.mu.Lock()
	for _, c := range changes {
		c.ctx, c.done = ctx, make(chan struct{})
	}
	w.queue = append(w.queue, changes...)
	w.mu.Unlock()

	// The last change is done no earlier than the others: whoever drains the queue takes all of it.
	last := changes[len(changes)-1]
	select {
	case <-last.done:
	case <-ctx.Done():
		w.withdraw(changes, ctx.Err())
		<-last.done
	case w.slot <- struct{}{}:
		w.drain()
		w.release()
	}
}

// withdraw takes changes whose caller gave up out of the queue. Those that are being carried out finish by themselves
// soon: their context is the caller's.
func (w *Writer) withdraw(changes []*change, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.DeleteFunc(w.queue, func(queued *change) bool {
		if !slices.Contains(changes, queued) {
			return false
		}
		queued.finish(err)
		return true
	})
}

func (c *change) finish(err error) {
	c.err = err
	close(c.done)
}

// drain carries out the queue. It is called with the slot taken, and returns when the queue was empty once.
func (w *Writer) drain() {
	for {
		w.mu.Lock()
		batch := w.queue
		w.queue = nil
		w.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		ctx, cancel := contextOf(batch)
		w.execute(ctx, batch)
		cancel()
		for _, c := range batch {
			c.finish(c.err)
		}
	}
}

// contextOf ends when every caller has given up, so that one caller's end does not fail the others' changes.
func contextOf(batch []*change) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(batch[0].ctx))
	var waiting atomic.Int64
	waiting.Store(int64(len(batch)))
	for _, c := range batch {
		stop := context.AfterFunc(c.ctx, func() {
			if waiting.Add(-1) == 0 {
				cancel(context.Cause(c.ctx))
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, func() { cancel(context.Canceled) }
}

// entriesOf returns how many custom entries the table holds as far as is known.
func (w *Writer) entriesOf(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.tables[id]; ok {
		return t.custom
	}
	return 0
}

// forgetFailures makes everything due that could not be read.
func (w *Writer) forgetFailures() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.failed {
		w.rereads.Forget(id)
	}
	clear(w.failed)
	w.network.retry()
}

// settleTime returns how long the cloud was seen to need for a batch, 0 when that is not known.
func (w *Writer) settleTime() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pace.enough
}

// readyAt returns when the cloud is likely to accept the next batch.
func (w *Writer) readyAt() time.Time {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Add(w.pace.delay(now))
}

func (w *Writer) take(ctx context.Context) error {
	select {
	case w.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives the slot back. Changes that arrived after the last read of the queue have a caller that waits for the
// slot, so they are not lost.
func (w *Writer) release() { <-w.slot }

// batchTimeout bounds how long a batch is repeated while the cloud says that it is busy. Afterwards its routes are compared
// anew, and other routes get their turn. It is longer than the minute for which a throttled action stays closed.
const batchTimeout = 2 * time.Minute

var errBatchTimeout = errors.New("the cloud stayed busy")

// execute carries out changes, deletions first: a CIDR that moves must be free before it is taken again. It sets the
// changes' errors.
func (w *Writer) execute(ctx context.Context, changes []*change) {
	removal := func(c *change) bool { return c.create == nil }
	for _, kind := range [][]*change{
		slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return !removal(c) }), slices.DeleteFunc(slices.Clone(changes), removal),
	} {
		refused := map[string]error{}
		for _, batch := range batches(kind, w.opts.BatchSize) {
			table := batch[0].table()
			if err := refused[table]; err != nil {
				fail(batch, err)
				continue
			}
			refused[table] = w.write(ctx, batch)
		}
	}
}

// batches splits changes by table and by the size of a call. A call never spans tables: the cloud's answer names failed
// entries by CIDR and next hop, which are the same in every table.
func batches(changes []*change, size int) [][]*change {
	var all [][]*change
	open := map[string]int{}
	for _, c := range changes {
		at, ok := open[c.table()]
		if !ok || len(all[at]) == size {
			at = len(all)
			all = append(all, nil)
			open[c.table()] = at
		}
		all[at] = append(all[at], c)
	}
	return all
}

// write carries out one batch, as often as it takes: the cloud refuses it while it is busy with another. It returns why
// further writes to the table would end alike, nil when they may not.
func (w *Writer) write(ctx context.Context, batch []*change) error {
	ctx, cancel := context.WithTimeoutCause(ctx, batchTimeout, errBatchTimeout)
	defer cancel()
	others := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, maxRetry)
	wait := w.paced(func(p *pace, now time.Time) time.Duration { return p.delay(now) })
	for {
		if err := sleep.For(ctx, wait); err != nil {
			giveUp(batch, err)
			return nil
		}
		results, err := w.call(ctx, batch)
		switch {
		case alicloud.IsThrottled(err):
			// Nothing was changed. The client keeps the action closed until its next window opens.
			fail(batch, err)
			wait = 0
		case alicloud.IsBusy(err):
			fail(batch, err)
			wait = w.paced(func(p *pace, now time.Time) time.Duration {
				if wait, ours := p.busy(now); ours {
					return wait
				}
				return others.When("") // somebody else's change
			})
		case err != nil:
			return w.refused(ctx, batch, err)
		default:
			w.paced(func(p *pace, now time.Time) time.Duration { p.accepted(now); return 0 })
			// Single entries may still have failed. Those that are busy wait like any other that failed: repeating them here
			// would keep all other routes waiting.
			for i, c := range batch {
				c.err = w.outcome(c, results[i])
			}
			return nil
		}
	}
}

func (w *Writer) paced(step func(p *pace, now time.Time) time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return step(&w.pace, time.Now())
}

// call makes the one call of the batch.
func (w *Writer) call(ctx context.Context, batch []*change) ([]error, error) {
	ctx = explained(ctx, batch)
	if batch[0].create == nil {
		entries := make([]alicloud.RouteEntry, len(batch))
		for i, c := range batch {
			entries[i] = *c.remove
		}
		return w.opts.API.DeleteRouteEntries(ctx, entries)
	}
	routes := make([]alicloud.NewRoute, len(batch))
	for i, c := range batch {
		routes[i] = *c.create
	}
	return w.opts.API.CreateRouteEntries(ctx, routes)
}

// refused handles a call that failed as a whole. One bad entry may be the reason, so the halves are tried alone, unless the
// reason has nothing to do with single entries. A write with an unknown result is never repeated before a read. It returns why
// further writes to the table would end alike, nil when they may not.
func (w *Writer) refused(ctx context.Context, batch []*change, err error) error {
	switch {
	case alicloud.IsAmbiguous(err) || ctx.Err() != nil:
		w.markStale(batch[0].table())
		fail(batch, err)
		return nil //nolint:nilerr // each change has the error, and further writes may end otherwise
	case len(batch) == 1:
		batch[0].err = w.outcome(batch[0], err)
		if refusesAll(err) || alicloud.IsQuota(err) {
			return err
		}
		return nil
	case refusesAll(err):
		fail(batch, err)
		return err
	}
	if badNextHop(err) {
		good, bad := w.splitByInstance(ctx, batch)
		if len(bad) > 0 {
			fail(bad, err)
			if len(good) == 0 {
				return nil
			}
			return w.write(ctx, good)
		}
	}
	middle := len(batch) / 2
	if stop := w.write(ctx, batch[:middle]); stop != nil {
		fail(batch[middle:], stop)
		return stop
	}
	return w.write(ctx, batch[middle:])
}

// splitByInstance asks the cloud which changes lead to an instance of the VPC. An instance that it does not show is no proof of
// anything but that its route need not be tried now.
func (w *Writer) splitByInstance(ctx context.Context, batch []*change) (good, bad []*change) {
	ids := sets.New[string]()
	for _, c := range batch {
		if c.create != nil {
			ids.Insert(c.create.InstanceID)
		}
	}
	shown, err := shownOf(ctx, w.opts.API, alicloud.InstanceQuery{IDs: sets.List(ids), VPCID: w.opts.Config.VPCID})
	if ids.Len() == 0 || err != nil {
		return batch, nil
	}
	for _, c := range batch {
		if c.create != nil && !shown.Has(c.create.InstanceID) {
			bad = append(bad, c)
			continue
		}
		good = append(good, c)
	}
	return good, bad
}

// shownOf asks ECS for instances and returns the ids of those that it shows.
func shownOf(ctx context.Context, api API, query alicloud.InstanceQuery) (sets.Set[string], error) {
	shown := sets.New[string]()
	if len(query.IDs) == 0 {
		return shown, nil
	}
	found, err := api.DescribeInstances(ctx, query)
	for i := range found {
		shown.Insert(found[i].ID)
	}
	return shown, err
}

// outcome is what a result means for the change, and notes it in the remembered table.
func (w *Writer) outcome(c *change, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tables[c.table()]
	now := time.Now()
	switch {
	case err == nil && c.create != nil && ok:
		t.created(*c.create, now)
	case c.remove != nil && ok && (err == nil || alicloud.IsNotFound(err)):
		t.removed(*c.remove, now)
		return nil
	case alicloud.IsDuplicate(err) && ok:
		// Somebody made an entry for the CIDR since the table was read. Whose it is shows the next read.
		t.stale = true
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

func (w *Writer) markStale(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.tables[id]; ok {
		t.stale = true
	}
}

// fail gives every change of the batch the error.
func fail(batch []*change, err error) {
	for _, c := range batch {
		c.err = fmt.Errorf("%s: %w", c, err)
	}
}

// giveUp ends the batch for want of time. What the cloud said last says more than that the time is over.
func giveUp(batch []*change, err error) {
	for _, c := range batch {
		if c.err == nil {
			c.err = fmt.Errorf("%s: %w", c, err)
		}
	}
}

// Bounds of the pace of writes.
const (
	// firstRetry and maxRetry bound the wait after the cloud said that it is busy with somebody else's change.
	firstRetry = 50 * time.Millisecond
	maxRetry   = 5 * time.Second
	// likelySettle is how long the cloud is taken to need for a batch while nothing is known: each try and each read of
	// the tables before that is likely to be a wasted call.
	likelySettle = time.Second
	// relearn is after how long without writes the learned time is dropped: the cloud may be faster by then.
	relearn = 2 * time.Minute
)

// pace learns how long the cloud needs between two batches, so that it is neither asked in vain nor left idle: the longest time that was
// too short, and the shortest that was enough, 0 while that is not known. It tries the middle until one is half of the other; closer, a
// refused call costs more than it saves.
type pace struct {
	last          time.Time // when the last batch was accepted
	short, enough time.Duration
}

// delay is how long to wait before the next batch.
func (p *pace) delay(now time.Time) time.Duration {
	since := now.Sub(p.last)
	if since >= relearn {
		p.short, p.enough = 0, 0
	}
	target := p.enough
	if p.enough-p.short > p.enough/2 {
		target = (p.enough + p.short) / 2
	}
	return max(0, target-since)
}

// busy notes that a batch was refused. It returns how long to wait before it is tried again, if our own last batch is the likely reason.
func (p *pace) busy(now time.Time) (wait time.Duration, ours bool) {
	since := now.Sub(p.last)
	if since > 4*max(p.enough, likelySettle) {
		return 0, false
	}
	p.short = max(p.short, since)
	if p.enough <= p.short {
		p.enough = max(likelySettle, p.short*5/4)
	}
	return p.enough - since, true
}

// accepted notes that a batch was accepted.
func (p *pace) accepted(now time.Time) {
	p.enough = min(p.enough, now.Sub(p.last))
	p.last = now
}

// observed notes what a read showed after the last batch: whether the cloud was still at work on it. That is known without a refused
// call.
func (p *pace) observed(now time.Time, settling bool) {
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero() || since >= relearn:
	case settling:
		p.short = max(p.short, since)
		if p.enough <= p.short {
			p.enough = 0
		}
	case p.enough == 0 && since > p.short && since <= likelySettle*5/4:
		p.enough = since
	}
}
