package vpcroute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// postponedError says of a change that it was not made, and not for its own sake, because the cloud is at work on our last batch, or others
// may join it.
type postponedError struct{ until time.Time }

func (postponedError) Error() string { return "other routes come first" }

// carryOut makes the changes, deletions first: a CIDR that moves must be free before it is taken again. It sets the error of each, nil for
// one that is done or that the cloud accepted, remembers what failed, and returns those that were tried. A call never spans tables: the
// cloud's answer names failed entries by CIDR and next hop, which are the same in every table.
func (w *Writer) carryOut(ctx context.Context, o *observation, changes []*change) (tried []*change) {
	for _, c := range changes {
		if node := o.routes[c.cidr].node; node != nil {
			c.node = node.Name
		}
	}
	for _, removals := range []bool{true, false} {
		for _, id := range o.IDs {
			batch := slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.table != id || (c.remove != nil) != removals })
			_ = w.write(ctx, slices.Chunk(batch, w.opts.BatchSize)) // each change has its error
		}
	}
	now := time.Now()
	for _, c := range changes {
		if postponed, ok := errors.AsType[postponedError](c.err); ok {
			o.again(postponed.until)
			continue
		}
		tried = append(tried, c)
		observeChange(c)
		switch {
		case ctx.Err() != nil:
		case c.remove != nil:
			if c.err == nil && !c.proven {
				w.removals.recent[c.route] = now
			}
		case c.err == nil:
			w.retries.succeeded(c.key())
		case alicloud.IsQuota(c.err):
			w.retries.failures[fullTable(c.table)] = failure{err: c.err, entries: w.tables[c.table].custom, until: now.Add(waits.RouteRefused)}
		default:
			w.retries.failed(c.key(), c.err, now)
		}
	}
	return tried
}

// write makes a call for each batch of changes of one kind and table. It returns why further writes to the table would end alike, which
// then get that error without a call, nil when they may not.
func (w *Writer) write(ctx context.Context, batches iter.Seq[[]*change]) (stop error) {
	for batch := range batches {
		if stop != nil {
			fail(batch, stop)
		} else if len(batch) > 0 {
			stop = w.writeBatch(ctx, batch)
		}
	}
	return stop
}

func (w *Writer) writeBatch(ctx context.Context, batch []*change) (stop error) {
	full, collects := len(batch) == w.opts.BatchSize, ""
	if !full && batch[0].remove == nil {
		collects = batch[0].table
	}
	wait := w.pace.delay(time.Now(), collects)
	if wait > 0 && !full {
		fail(batch, postponedError{time.Now().Add(wait)}) // further routes may fill the batch meanwhile
		return nil
	}
	if err := sleep.For(ctx, wait); err != nil {
		fail(batch, err)
		return nil //nolint:nilerr // each change has the error
	}
	results, err := w.call(ctx, batch)
	switch {
	case alicloud.IsBusy(err) && w.pace.busy(time.Now()):
		fail(batch, postponedError{time.Now().Add(w.pace.delay(time.Now(), collects))})
		return nil
	case alicloud.IsBusy(err), alicloud.IsThrottled(err): // nothing was changed
		fail(batch, err)
		return err
	case err != nil:
		return w.refused(ctx, batch, err)
	}
	w.pace.last = time.Now()
	if batch[0].remove == nil {
		w.pace.created[batch[0].table] = w.pace.last
	}
	for i, c := range batch {
		w.note(c, results[i])
	}
	return nil
}

// call makes the one call of the batch.
func (w *Writer) call(ctx context.Context, batch []*change) ([]error, error) {
	ctx = explained(ctx, batch)
	if batch[0].remove != nil {
		entries := make([]alicloud.RouteEntry, len(batch))
		for i, c := range batch {
			entries[i] = c.remove.RouteEntry
		}
		return w.opts.API.DeleteRouteEntries(ctx, entries)
	}
	routes := make([]alicloud.NewRoute, len(batch))
	for i, c := range batch {
		routes[i] = alicloud.NewRoute{TableID: c.table, CIDR: c.cidr.String(), InstanceID: c.instance, Description: w.opts.Config.mark()}
	}
	return w.opts.API.CreateRouteEntries(ctx, routes)
}

// refused handles a call that failed as a whole. One bad entry may be the reason, so the halves are tried alone, unless the
// reason has nothing to do with single entries. A write with an unknown result is never repeated before a read.
func (w *Writer) refused(ctx context.Context, batch []*change, err error) (stop error) {
	switch {
	case alicloud.IsAmbiguous(err) || ctx.Err() != nil:
		w.tables[batch[0].table].stale = true
		fail(batch, err)
		return nil //nolint:nilerr // each change has the error, and further writes may end otherwise
	case refusesAll(err) || len(batch) == 1 && alicloud.IsQuota(err):
		fail(batch, err)
		return err
	case len(batch) == 1:
		w.note(batch[0], err)
		return nil
	}
	parts := [][]*change{batch[:len(batch)/2], batch[len(batch)/2:]}
	if badNextHop(err) {
		if good := w.shownInVPC(ctx, batch, err); len(good) < len(batch) {
			parts = [][]*change{good}
		}
	}
	return w.write(ctx, slices.Values(parts))
}

// shownInVPC asks the cloud which creations lead to an instance of the VPC, and has the others fail: that it does not show an instance is
// no proof of anything but that its route need not be tried now.
func (w *Writer) shownInVPC(ctx context.Context, batch []*change, refusal error) (good []*change) {
	ids := sets.New[string]()
	for _, c := range batch {
		ids.Insert(c.instance)
	}
	shown, err := shownOf(ctx, w.opts.API, alicloud.InstanceQuery{IDs: sets.List(ids), VPCID: w.opts.Config.VPCID})
	if err != nil || batch[0].remove != nil {
		return batch
	}
	for _, c := range batch {
		if shown.Has(c.instance) {
			good = append(good, c)
		} else {
			fail([]*change{c}, refusal)
		}
	}
	return good
}

// shownOf asks ECS for instances and returns the ids of those that it shows.
func shownOf(ctx context.Context, api API, query alicloud.InstanceQuery) (sets.Set[string], error) {
	shown := sets.New[string]()
	found, err := api.DescribeInstances(ctx, query)
	for i := range found {
		shown.Insert(found[i].ID)
	}
	return shown, err
}

// note takes in what a result means for the change and for the remembered table.
func (w *Writer) note(c *change, err error) {
	t, now := w.tables[c.table], time.Now()
	switch {
	case c.remove != nil && (err == nil || alicloud.IsNotFound(err)):
		t.removed(c.cidr, now)
		t.stale = t.stale || err != nil // somebody else has changed it since it was read
		return
	case err == nil:
		t.created(c.route, w.opts.Config.mark(), now)
		return
	case alicloud.IsDuplicate(err):
		// Somebody made an entry for the CIDR since the table was read. Whose it is shows the next read.
		t.stale = true
	}
	fail([]*change{c}, err)
}

// fail gives every change of the batch the error.
func fail(batch []*change, err error) {
	for _, c := range batch {
		c.err = fmt.Errorf("%s: %w", c, err)
	}
}

// Bounds of the pace of writes.
const (
	// firstPause is the pause after a batch while nothing is known of the cloud: about what the rate limit of 90 calls per minute leaves
	// between two.
	firstPause = 650 * time.Millisecond
	// relearn is after how long without writes what was learned is dropped: the cloud may be faster by then.
	relearn = 2 * time.Minute
	// collectFor is how long after the last creations new routes that fill no batch wait for further ones: nodes that join one after the other
	// share calls.
	collectFor = 2 * time.Second
)

// pace is how long the cloud is left alone after a batch, so that it is not asked in vain.
type pace struct {
	last time.Time // when the last batch was accepted
	// settle is a quarter longer than the longest time after which the cloud was still at work on a batch, 0 while none is known.
	settle  time.Duration
	created map[string]time.Time // when the last creations were accepted, by table
}

// delay is how long to wait before the next batch. One that collects routes for a table also waits for further ones; "" collects none.
func (p *pace) delay(now time.Time, collects string) time.Duration {
	since := now.Sub(p.last)
	if since >= relearn {
		p.settle = 0
	}
	wait := cmp.Or(p.settle, firstPause) - since
	if collects != "" {
		wait = max(wait, collectFor-now.Sub(p.created[collects]))
	}
	return max(0, wait)
}

// busy notes that a batch was refused. It reports whether our own last batch is the likely reason.
func (p *pace) busy(now time.Time) bool {
	since := now.Sub(p.last)
	if since > 4*max(p.settle, likelySettle) {
		return false
	}
	p.settle = max(p.settle, since*5/4)
	return true
}
