package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// batchTimeout bounds how long a batch is repeated while the cloud says that it is busy. Afterwards its routes are compared
// anew, and other routes get their turn. It is longer than the minute for which a throttled action stays closed.
const batchTimeout = 2 * time.Minute

var errBatchTimeout = errors.New("the cloud stayed busy")

// execute carries out changes, deletions first: a CIDR that moves must be free before it is taken again. It sets the
// changes' errors.
func (w *Writer) execute(ctx context.Context, changes []*change) {
	removals, creations := []*change{}, []*change{}
	for _, c := range changes {
		if c.remove != nil {
			removals = append(removals, c)
		} else {
			creations = append(creations, c)
		}
	}
	for _, kind := range [][]*change{removals, creations} {
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
	wait := w.pace.delay(time.Now())
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
			var ours bool
			if wait, ours = w.pace.busy(time.Now()); !ours {
				wait = others.When("")
			}
		case err != nil:
			return w.refused(ctx, batch, err)
		default:
			w.pace.accepted(time.Now())
			// Single entries may still have failed. Those that are busy wait like any other that failed: repeating them here
			// would keep all other routes waiting.
			for i, c := range batch {
				c.err = w.outcome(c, results[i])
			}
			return nil
		}
	}
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
		w.tables[batch[0].table()].stale = true
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
	t, now := w.tables[c.table()], time.Now()
	switch {
	case err == nil && c.create != nil:
		t.created(*c.create, now)
	case c.remove != nil && (err == nil || alicloud.IsNotFound(err)):
		t.removed(*c.remove, now)
		return nil
	case alicloud.IsDuplicate(err):
		// Somebody made an entry for the CIDR since the table was read. Whose it is shows the next read.
		t.stale = true
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
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
