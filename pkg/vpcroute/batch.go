package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// batchTimeout bounds how long a batch is repeated while the cloud says that it is busy. Afterwards its routes are judged
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
		for _, batch := range batches(kind, w.opts.BatchSize) {
			w.write(ctx, batch)
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

// write carries out one batch, as often as it takes: the cloud refuses it while it is busy with another.
func (w *Writer) write(ctx context.Context, batch []*change) {
	ctx, cancel := context.WithTimeoutCause(ctx, batchTimeout, errBatchTimeout)
	defer cancel()
	for attempt := 0; len(batch) > 0; attempt++ {
		if err := sleep(ctx, w.pacer.delay(time.Now())); err != nil {
			giveUp(batch, err)
			return
		}
		results, err := w.call(ctx, batch)
		switch {
		case alicloud.IsThrottled(err):
			// Nothing was changed. The client keeps the action closed until its next window opens.
			fail(batch, err)
			continue
		case alicloud.IsBusy(err):
			fail(batch, err)
			if sleep(ctx, w.pacer.busy(time.Now(), attempt)) != nil {
				return
			}
			continue
		case err != nil:
			w.refused(ctx, batch, err)
			return
		}
		w.pacer.accepted(time.Now())
		w.settled.Store(int64(w.pacer.right))
		batch = w.note(batch, results)
	}
}

// call makes the one call of the batch.
func (w *Writer) call(ctx context.Context, batch []*change) ([]error, error) {
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

// refused handles a call that failed as a whole. One bad entry may be the reason, so the halves are tried alone, unless
// the reason has nothing to do with the entries. A write with an unknown result is never repeated before a read.
func (w *Writer) refused(ctx context.Context, batch []*change, err error) {
	if alicloud.IsAmbiguous(err) || ctx.Err() != nil {
		w.markStale(batch[0].table())
		fail(batch, err)
		return
	}
	if len(batch) == 1 {
		batch[0].err = w.outcome(batch[0], err)
		return
	}
	var answer *alicloud.Error
	if !errors.As(err, &answer) || alicloud.IsAuth(err) || alicloud.IsForbidden(err) {
		fail(batch, err)
		return
	}
	middle := len(batch) / 2
	w.write(ctx, batch[:middle])
	w.write(ctx, batch[middle:])
}

// note takes the results of an accepted call into the remembered table. It returns the changes whose entries were busy.
func (w *Writer) note(batch []*change, results []error) []*change {
	var busy []*change
	for i, c := range batch {
		c.err = w.outcome(c, results[i])
		if alicloud.IsBusy(c.err) {
			busy = append(busy, c)
		}
	}
	return busy
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

// giveUp ends the batch for want of time. What the cloud said last tells more than that the time is over.
func giveUp(batch []*change, err error) {
	for _, c := range batch {
		if c.err == nil {
			c.err = fmt.Errorf("%s: %w", c, err)
		}
	}
}

// sleep waits, or returns why the context ended.
func sleep(ctx context.Context, duration time.Duration) error {
	if duration <= 0 && ctx.Err() == nil {
		return nil
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
