package vpcroute

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Writer is the one place that reads and changes the route tables of a VPC. The cloud carries out one batch per VPC at a
// time and refuses a second one, so whatever is asked for while a call is in flight makes up the next batch. It remembers
// the tables, so that an event costs writes only. It has no goroutine of its own and is safe for concurrent use.
type Writer struct {
	opts      Options
	guardrail *guardrail

	// slot holds one token, which whoever calls the cloud takes. It guards the pace.
	slot  chan struct{}
	pacer batchPacer
	// settled is what the pace has learned, for readers without the slot.
	settled atomic.Int64

	mu     sync.Mutex // guards the fields below
	queue  []*change
	tables map[string]*table
	order  []string         // the ids of the managed tables; empty until they are known
	seen   sets.Set[string] // instances that are or were nodes since the start
	gone   sets.Set[string] // instances of unowned that the cloud no longer has
}

// change is one entry to create or to remove.
type change struct {
	create *alicloud.NewRoute
	remove *alicloud.RouteEntry
	ctx    context.Context //nolint:containedctx // that of the waiting caller, which may give up before its turn
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
		opts: opts.withDefaults(), guardrail: newGuardrail(opts), slot: make(chan struct{}, 1), tables: map[string]*table{},
		seen: sets.New[string](), gone: sets.New[string](),
	}
}

// view reads the nodes of the cache and remembers their instances.
func (w *Writer) desired(ctx context.Context) (*desired, error) {
	nodes, err := w.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	d := desiredOf(nodes, w.opts.Config, w.opts.InstanceID)
	if d.wantsIPv6() {
		ipv6, err := w.guardrail.ipv6(ctx)
		if err != nil {
			return nil, err
		}
		if !ipv6 {
			d.giveUpIPv6(w.opts.Config.VPCID)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.seen.Union(d.instances)
	d.former = w.seen.Union(w.gone)
	return d, nil
}

// node returns the node of the cache, nil when there is none.
func (w *Writer) node(name string) *corev1.Node {
	node, err := w.opts.Nodes.Lister().Get(name)
	if err != nil {
		return nil
	}
	return node
}

// read returns the managed tables as they were at notBefore or later. Tables whose last write had an unknown result are
// always read again.
func (w *Writer) read(ctx context.Context, notBefore time.Time) ([]*table, error) {
	if now := time.Now(); notBefore.After(now) {
		notBefore = now
	}
	if tables, ok := w.remembered(notBefore); ok {
		return tables, nil
	}
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	defer w.release()
	// Somebody else may have read while this caller waited for its turn.
	if tables, ok := w.remembered(notBefore); ok {
		return tables, nil
	}
	ids, err := w.tableIDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := w.readTable(ctx, id, notBefore); err != nil {
			return nil, err
		}
	}
	tables, ok := w.remembered(notBefore)
	if !ok {
		// Nobody writes while the slot is taken. No tables at all would look like no route at all.
		return nil, fmt.Errorf("read route tables %v: the answers are older than the question", ids)
	}
	return tables, nil
}

func (w *Writer) remembered(notBefore time.Time) ([]*table, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tables := make([]*table, 0, len(w.order))
	for _, id := range w.order {
		t, ok := w.tables[id]
		if !ok || t.stale || t.read.Before(notBefore) {
			return nil, false
		}
		tables = append(tables, t.clone())
	}
	return tables, len(tables) > 0
}

// readTable is called with the slot taken, so that no write of ours can overtake the answer.
func (w *Writer) readTable(ctx context.Context, id string, notBefore time.Time) error {
	w.mu.Lock()
	t, known := w.tables[id]
	fresh := known && !t.stale && !t.read.Before(notBefore)
	w.mu.Unlock()
	if fresh {
		return nil
	}
	asked := time.Now()
	entries, err := w.opts.API.DescribeRouteEntries(ctx, id, w.opts.Config.ipv6())
	if err != nil {
		return fmt.Errorf("read route table %s: %w", id, err)
	}
	read := newTable(id, entries, w.opts.Config, asked)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tables[id] = read
	observeTable(read, w.opts.Quota)
	return nil
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
	var mu sync.Mutex
	waiting := len(batch)
	stops := make([]func() bool, 0, len(batch))
	for _, c := range batch {
		stops = append(stops, context.AfterFunc(c.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if waiting--; waiting == 0 {
				cancel(context.Cause(c.ctx))
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
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

// settleTime returns how long the cloud was seen to need for a batch, 0 when that is not known.
func (w *Writer) settleTime() time.Duration { return time.Duration(w.settled.Load()) }

func (w *Writer) take(ctx context.Context) error {
	select {
	case w.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives the slot back. Changes that arrived after the last look at the queue have a caller that waits for the
// slot, so they are not lost.
func (w *Writer) release() { <-w.slot }

// vanished remembers instances that the cloud no longer has.
func (w *Writer) vanished(instances []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone.Insert(instances...)
}
