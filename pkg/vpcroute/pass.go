package vpcroute

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Times of a pass.
const (
	// confirmPage is for each page of entries how long after a batch its table is read although more batches wait: nodes whose routes work by
	// then need not wait for the last batch, and large tables are not read more often than they are written.
	confirmPage = 5 * time.Second
	pageEntries = 100
	// likelySettle is how long the cloud is taken to need for a batch while nothing is known.
	likelySettle = time.Second
	// firstRead is the wait before a read that hopes for a fast cloud.
	firstRead = 50 * time.Millisecond
	// againConfirm and maxConfirm bound the wait between further reads.
	againConfirm = 200 * time.Millisecond
	maxConfirm   = 5 * time.Second
	// busyAttempts is how often an entry may be busy before an event says so.
	busyAttempts = 6
)

// pass makes one comparison of nodes and tables, and at most one batch of writes per table and kind. It returns when the next one is due if
// nothing happens.
func (c *Controller) pass(ctx context.Context) (time.Time, error) {
	defer observeLatency("reconcile", time.Now())
	if err := c.writer.turn.Acquire(ctx, 1); err != nil {
		return time.Time{}, err
	}
	defer c.writer.turn.Release(1)
	now := time.Now()
	drifting := !now.Before(c.drift)
	if drifting || (!c.poll.IsZero() && !now.Before(c.poll)) {
		c.readAfter = now
	}
	d, err := c.writer.desired(ctx)
	if err != nil {
		return time.Time{}, err
	}
	// Before anything is read: whether the cloud answers or not, a node that joins takes no pods until its routes work.
	c.conditions.require(d.joining...)
	o, err := c.writer.observe(ctx, d, c.readAfter)
	c.report.selection(o.Selection, d.newest(), err)
	if err != nil {
		return time.Time{}, err
	}
	if drifting {
		c.drift = now.Add(jittered(c.opts.Config.Period))
	}
	o.again(c.drift)
	forgetTables(c.managed, o.IDs)
	c.managed = o.IDs
	if !c.opts.SkipSourceDestCheck {
		c.checks.want(d.routed())
	}
	c.emit(o)
	c.conditions.set(wantedConditions(d, o.plans, c.writer.network.tableOf, c.checks.availability))

	var changes []*change
	paused := c.opts.paused()
	c.report.paused(o, paused)
	if !paused {
		changes = append(o.removable(), c.writer.creations(o, now)...)
	}
	if drifting && c.settledBefore {
		driftFound.Add(float64(len(changes)))
	}
	c.settledBefore = len(changes) == 0
	began := time.Now()
	tried := c.writer.carryOut(ctx, o, changes)
	for _, each := range tried {
		if ctx.Err() == nil {
			c.report.change(ctx, each, d.routes[each.cidr].node, c.writer.retries.failures[each.key()], c.writer.tables[each.table].custom, began)
		}
	}
	c.schedule(o, len(changes), len(tried))
	return o.next, nil
}

// emit writes the events and the figures of this pass.
func (c *Controller) emit(o *observation) {
	newest := o.newest()
	c.report.problems(problemsOf(o, c.writer.network.subnets))
	quota := c.opts.Quota() // as of now: the Quota Center may have answered since the pass before
	for _, plan := range o.plans {
		c.report.reading(plan.table, newest)
		if plan.err != nil {
			continue
		}
		conflictsGauge.WithLabelValues(plan.id).Set(float64(len(plan.conflicts)))
		missingRoutes.WithLabelValues(plan.id).Set(float64(len(plan.states) - plan.count(stateAvailable)))
		if quota.exceeded(plan.custom) { // any number would be taken for the quota
			quotaGauge.Delete(map[string]string{"table": plan.id})
		} else {
			quotaGauge.WithLabelValues(plan.id).Set(float64(quota.Value))
		}
		c.report.tableQuota(plan, newest, quota)
	}
	c.report.withheld(len(o.removals.withheld), newest)
}

// removable returns the next batch of deletions of each table. More than a call would keep routes waiting that are wanted since.
func (o *observation) removable() (changes []*change) {
	for _, plan := range o.plans {
		removable := plan.removable(o.removals)
		changes = append(changes, removable[:min(len(removable), alicloud.MaxRouteEntriesPerCall)]...)
	}
	return changes
}

// creations returns the next batch of creations of each table. Failures of what is not wanted any more are forgotten.
func (w *Writer) creations(o *observation, now time.Time) (changes []*change) {
	for what := range w.retries.failures {
		if key, ok := what.(routeKey); ok && o.routes[key.cidr].instance != key.instance {
			w.retries.succeeded(key)
		}
	}
	for _, plan := range o.plans {
		room, until := w.retries.room(plan.table, now)
		for _, missing := range plan.create {
			switch due := w.retries.until(routeKey{plan.id, missing}, now); {
			case w.network.obstacle(missing.cidr) != "":
			case room == 0:
				o.again(until)
			case !due.IsZero():
				o.again(due)
			default:
				changes = append(changes, &change{table: plan.id, route: missing})
				room--
			}
		}
	}
	return changes
}

// schedule decides when the next pass is due without an event, after one that chose so many changes and tried some of them.
func (c *Controller) schedule(o *observation, chosen, tried int) {
	now := time.Now()
	o.again(o.withoutCIDR)
	switch {
	case chosen > 0:
		// The next batch follows; a read only when one is due, or nothing is left to write.
		c.poll, c.polls = time.Time{}, 0
		confirm := slices.ContainsFunc(o.plans, func(plan *plan) bool {
			return !plan.unread.IsZero() && now.Sub(plan.unread) >= confirmPage*time.Duration(1+plan.custom/pageEntries)
		})
		if confirm {
			c.readAfter = now
		}
		if confirm || tried > 0 {
			o.again(now)
		}
	case !slices.ContainsFunc(o.plans, func(plan *plan) bool { return plan.count(statePending) > 0 }):
		c.poll, c.polls = time.Time{}, 0
	default:
		if !now.Before(c.poll) {
			c.poll = now.Add(confirmAfter(c.polls, c.writer.pace.settle))
			c.polls++
		}
		o.again(c.poll)
	}
}

// confirmAfter is the wait before the next read for an entry that the cloud is at work on, after so many of them. settle
// is how long the cloud was seen to need: the first read then waits for it. While that is not known (0) the first read
// follows the write almost at once, because a cloud may be that fast, and the second when the work should be done.
func confirmAfter(reads int, settle time.Duration) time.Duration {
	if settle > 0 {
		if reads == 0 {
			return settle
		}
		reads++
	}
	switch reads {
	case 0:
		return firstRead
	case 1:
		return likelySettle - firstRead
	default:
		return min(maxConfirm, againConfirm<<min(reads-2, 5))
	}
}

// jittered spreads a period over nine to eleven tenths of it, so that clusters of one account do not read together.
func jittered(period time.Duration) time.Duration {
	return period*9/10 + rand.N(period/5)
}
