package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// errPostponed says of a change that it was not made, and not for its own sake, because the cloud is at work on our last batch.
var errPostponed = errors.New("the cloud is at work on another batch")

// execute carries out changes, deletions first: a CIDR that moves must be free before it is taken again. It sets the changes' errors.
// A call never spans tables: the cloud's answer names failed entries by CIDR and next hop, which are the same in every table.
func (w *Writer) execute(ctx context.Context, changes []*change) {
	type kind struct {
		table  string
		create bool
	}
	kinds, order := map[kind][]*change{}, []kind{}
	for _, create := range []bool{false, true} {
		for _, c := range changes {
			if k := (kind{c.table(), create}); (c.create != nil) == create {
				if kinds[k] == nil {
					order = append(order, k)
				}
				kinds[k] = append(kinds[k], c)
			}
		}
	}
	for _, k := range order {
		w.write(ctx, kinds[k])
	}
}

// write carries out changes of one kind and table, in as many calls as it takes. Changes that would end like one that was refused get its
// error without a call.
func (w *Writer) write(ctx context.Context, changes []*change) {
	for len(changes) > 0 {
		size := min(len(changes), w.opts.BatchSize)
		if stop := w.writeBatch(ctx, changes[:size]); stop != nil {
			fail(changes[size:], stop)
			return
		}
		changes = changes[size:]
	}
}

// writeBatch makes the call for a batch. It returns why further writes to the table would end alike, nil when they may not.
func (w *Writer) writeBatch(ctx context.Context, batch []*change) error {
	wait := w.pace.delay(time.Now())
	if wait > 0 && len(batch) < w.opts.BatchSize {
		fail(batch, errPostponed) // further routes may fill the batch meanwhile
		return nil
	}
	if err := sleep.For(ctx, wait); err != nil {
		fail(batch, err)
		return nil //nolint:nilerr // each change has the error
	}
	results, err := w.call(ctx, batch)
	switch {
	case alicloud.IsBusy(err) && w.pace.busy(time.Now()):
		fail(batch, errPostponed)
		return nil
	case alicloud.IsBusy(err), alicloud.IsThrottled(err): // nothing was changed
		fail(batch, err)
		return err
	case err != nil:
		return w.refused(ctx, batch, err)
	}
	w.pace.accepted(time.Now())
	for i, c := range batch {
		c.err = w.outcome(c, results[i])
	}
	return nil
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
	case refusesAll(err) || len(batch) == 1 && alicloud.IsQuota(err):
		fail(batch, err)
		return err
	case len(batch) == 1:
		batch[0].err = w.outcome(batch[0], err)
		return nil
	}
	halves := [][]*change{batch[:len(batch)/2], batch[len(batch)/2:]}
	if badNextHop(err) {
		if good, bad := w.splitByInstance(ctx, batch); len(bad) > 0 {
			fail(bad, err)
			halves = [][]*change{good, nil}
		}
	}
	for i, half := range halves {
		if len(half) == 0 {
			continue
		}
		if stop := w.writeBatch(ctx, half); stop != nil {
			if i == 0 {
				fail(halves[1], stop)
			}
			return stop
		}
	}
	return nil
}

// splitByInstance asks the cloud which changes lead to an instance of the VPC. An instance that it does not show is no proof of
// anything but that its route need not be tried now.
func (w *Writer) splitByInstance(ctx context.Context, batch []*change) (good, bad []*change) {
	ids := sets.New[string]()
	for _, c := range batch {
		ids.Insert(c.route().instance)
	}
	shown, err := shownOf(ctx, w.opts.API, alicloud.InstanceQuery{IDs: sets.List(ids), VPCID: w.opts.Config.VPCID})
	for _, c := range batch {
		if err == nil && c.create != nil && !shown.Has(c.create.InstanceID) {
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

// Bounds of the pace of writes.
const (
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
	refused       bool // since the last batch was accepted
}

// delay is how long to wait before the next batch.
func (p *pace) delay(now time.Time) time.Duration {
	since := now.Sub(p.last)
	if since >= relearn {
		p.short, p.enough = 0, 0
	}
	target := p.enough
	if p.enough-p.short > p.enough/2 && !p.refused {
		target = (p.enough + p.short) / 2
	}
	return max(0, target-since)
}

// busy notes that a batch was refused. It reports whether our own last batch is the likely reason.
func (p *pace) busy(now time.Time) bool {
	since := now.Sub(p.last)
	if since > 4*max(p.enough, likelySettle) {
		return false
	}
	p.refused = true
	p.short = max(p.short, since)
	if p.enough <= p.short {
		p.enough = max(likelySettle, p.short*5/4)
	}
	return true
}

// accepted notes that a batch was accepted.
func (p *pace) accepted(now time.Time) {
	p.enough = min(p.enough, now.Sub(p.last))
	p.last, p.refused = now, false
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
