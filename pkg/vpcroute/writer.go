package vpcroute

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"

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
func (w *Writer) readyAt(now time.Time) time.Time {
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
