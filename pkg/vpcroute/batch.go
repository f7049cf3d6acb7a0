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

// batchTimeout bounds how long a batch is repeated while the cloud says that it is busy. Afterwards its routes are compared
// anew, and other routes get their turn. It is longer than the minute for which a throttled action stays closed.
const batchTimeout = 2 * time.Minute

var errBatchTimeout = errors.New("the cloud stayed busy")

// execute carries out changes, deletions first: a CIDR that moves must be free before it is taken again. It sets the
// changes' errors.
func (w *Writer) execute(ctx context.Context, changes []*change) {
	var removals, creations []*change
	for _, c := range changes {
		if c.create != nil {
			creations = append(creations, c)
		} else {
			removals = append(removals, c)
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
	for attempt := 0; ; attempt++ {
		if err := sleep.For(ctx, w.pacer.delay(time.Now())); err != nil {
			giveUp(batch, err)
			return nil
		}
		results, err := w.call(ctx, batch)
		switch {
		case alicloud.IsThrottled(err):
			// Nothing was changed. The client keeps the action closed until its next window opens.
			fail(batch, err)
		case alicloud.IsBusy(err):
			fail(batch, err)
			if sleep.For(ctx, w.pacer.busy(time.Now(), attempt)) != nil {
				return nil
			}
		case err != nil:
			return w.refused(ctx, batch, err)
		default:
			now := time.Now()
			w.pacer.accepted(now)
			w.settled.Store(int64(w.pacer.right))
			w.ready.Store(now.Add(w.pacer.delay(now)).UnixNano())
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
	if ids.Len() == 0 {
		return batch, nil
	}
	found, err := w.opts.API.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: sets.List(ids), VPCID: w.opts.Config.VPCID})
	if err != nil {
		return batch, nil
	}
	shown := sets.New[string]()
	for i := range found {
		shown.Insert(found[i].ID)
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
