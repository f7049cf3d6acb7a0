package vpcroute

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Times of a pass.
const (
	// confirmEvery is how long after a batch its table is read although more batches wait: nodes whose routes work by then need
	// not wait for the last batch. A read that confirms a page of entries comes earlier, after confirmPage.
	confirmEvery = 30 * time.Second
	// confirmPage counts once for each page of the table, and bounds confirmEvery from below, so that large tables are not read
	// more often than they are written.
	confirmPage = 5 * time.Second
	// pageEntries is how many entries a page has.
	pageEntries = 500
	// firstRead is the wait before a read that hopes for a fast cloud.
	firstRead = 50 * time.Millisecond
	// againConfirm and maxConfirm bound the wait between further reads.
	againConfirm = 200 * time.Millisecond
	maxConfirm   = 5 * time.Second
	// collectFor is how long routes wait for those of further nodes that are about to join, so that they share a call.
	collectFor = 2 * time.Second
	// busyAttempts is how often an entry may be busy before an event says so.
	busyAttempts = 6
)

// pass is one comparison of nodes and tables, at most one batch of writes per table and kind, and what must be remembered
// until the next one. It is used by one goroutine.
type pass struct {
	opts       Options
	writer     *Writer
	report     reporter
	conditions *conditions
	checks     *sourceDest
	// startChecks makes the source/destination checks run at a time.
	startChecks func(at time.Time)

	retries retries
	quota   tableQuota
	// settledBefore says that the last pass found nothing to change.
	settledBefore bool
	// managed are the tables of the last pass.
	managed []string

	// readAfter is the oldest read that is still good enough.
	readAfter time.Time
	// drift and poll are when the tables are to be read again: for what others changed, and for what the cloud is still
	// at work on. poll is zero when nothing settles; polls counts the reads for it.
	drift, poll time.Time
	polls       int
	// retry is when this pass wants to be repeated although nothing happened; zero for never.
	retry time.Time
	// held is since when routes wait for further ones, zero when none do, and holding says that they do at the end of this pass.
	held    time.Time
	holding bool
}

func newPass(c *Controller) *pass {
	return &pass{
		opts: c.opts, writer: c.writer, report: reporter{events: c.events}, conditions: c.conditions, checks: c.checks,
		startChecks: func(at time.Time) { c.queue.AddAfter(taskChecks, time.Until(at)) }, retries: newRetries(), quota: tableQuota{},
	}
}

// run makes the pass and returns when the next one is due if nothing happens.
func (p *pass) run(ctx context.Context) (time.Time, error) {
	defer observeLatency("reconcile", time.Now())
	now := time.Now()
	p.retry, p.holding = time.Time{}, false
	drifting := !now.Before(p.drift)
	if drifting || (!p.poll.IsZero() && !now.Before(p.poll)) {
		p.readAfter = now
	}
	d, err := p.writer.desired(ctx)
	if err != nil {
		return time.Time{}, err
	}
	// Before anything is read: whether the cloud answers or not, a node that joins takes no pods until its routes work.
	p.conditions.require(d.joining)
	selection, err := p.writer.choose(ctx, d, p.writer.choiceAge())
	p.report.selection(selection, d.newest(), err)
	if err != nil {
		return time.Time{}, err
	}
	p.manage(selection.IDs)
	readings := p.writer.read(ctx, selection.IDs, p.readAfter)
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	if drifting {
		p.drift = now.Add(jittered(p.opts.Config.Period))
	}
	tables, retry, _ := readable(readings)
	p.retryAt(retry)
	p.check(d)
	p.writer.learn(d)
	plans, removals := p.compare(ctx, d, tables, now)
	p.emit(d, readings, tables, plans, removals)
	p.conditions.set(wantedConditions(d, p.view(readings, plans)))

	var changes []*change
	if p.opts.paused() {
		p.report.paused(plans, removals, d.newest())
	} else {
		p.report.events.Resolve(ofCluster, reasonPaused)
		changes = p.choose(d, tables, plans, removals, now)
	}
	if drifting && p.settledBefore {
		driftFound.Add(float64(len(changes)))
	}
	p.settledBefore = len(changes) == 0
	p.carryOut(ctx, d, changes)
	return p.next(d, tables, plans, len(changes), p.writer.settleTime()), nil
}

// retryAt makes the next pass come at that time at the latest; zero is no time.
func (p *pass) retryAt(at time.Time) {
	if !at.IsZero() && (p.retry.IsZero() || at.Before(p.retry)) {
		p.retry = at
	}
}

// manage drops what is known of tables that are no longer managed.
func (p *pass) manage(ids []string) {
	for _, id := range p.managed {
		if !slices.Contains(ids, id) {
			forgetTable(id)
		}
	}
	p.managed = ids
}

// check has the source/destination checks of all routed nodes switched off.
func (p *pass) check(d *desired) {
	if p.opts.SkipSourceDestCheck {
		return
	}
	routed := map[string]*corev1.Node{}
	for _, want := range d.routes {
		routed[want.instance] = want.node
	}
	if due := p.checks.want(routed); !due.IsZero() {
		p.startChecks(due)
	}
}

// view is what this pass knows about the nodes' networks.
func (p *pass) view(readings []reading, plans []*plan) view {
	v := view{plans: plans, tableOf: p.writer.network.last().tableOf, check: p.checks.availability}
	for _, r := range readings {
		if r.err != nil {
			v.failed = append(v.failed, r.id)
		}
	}
	return v
}

// compare makes the plan of each table, and decides which entries without a node may go. Where that, or an entry in the way,
// takes a proof that an instance is gone, it asks the cloud for it.
func (p *pass) compare(ctx context.Context, d *desired, tables []*table, now time.Time) ([]*plan, decision) {
	plans, removals := p.writer.compare(d, tables, now)
	asked, next := p.writer.prove(ctx, d, doubtful(plans, removals), now)
	if asked {
		plans, removals = p.writer.compare(d, tables, time.Now())
	}
	p.retryAt(next)
	p.retryAt(removals.until)
	missing := map[routeKey]bool{}
	for _, plan := range plans {
		for cidr, s := range plan.states {
			missing[routeKey{plan.table, cidr}] = s == stateMissing
		}
	}
	p.retries.retain(missing)
	return plans, removals
}

// emit writes the events and the figures of this pass.
func (p *pass) emit(d *desired, readings []reading, tables []*table, plans []*plan, removals decision) {
	newest := d.newest()
	p.report.problems(problemsOf(d, plans, p.writer.network.last()))
	p.report.withoutCIDR(d.withoutCIDR)
	for _, r := range readings {
		p.report.reading(r, newest)
	}
	quota := p.opts.Quota() // as of now: the Quota Center may have answered since the pass before
	for i, plan := range plans {
		observePlan(plan)
		limit, known := p.quota.limit(tables[i], quota)
		observeQuota(plan.table, limit, known)
		p.report.tableQuota(tables[i], plan, newest, quota)
	}
	p.report.withheld(len(removals.withheld), newest)
}

// choose takes the next batch of each table: up to one call of deletions and one of creations. More would keep routes
// waiting that are wanted since.
func (p *pass) choose(d *desired, tables []*table, plans []*plan, removals decision, now time.Time) []*change {
	known := p.writer.network.last()
	creations := map[string][]*change{}
	most := 0
	for i, plan := range plans {
		creations[plan.table] = p.chooseCreations(tables[i], plan, known, now)
		most = max(most, len(creations[plan.table]))
	}
	held := p.hold(most, d.arriving, p.writer.readyAt(now), now)
	var changes []*change
	for _, plan := range plans {
		removable := plan.removable(removals)
		for at := range removable[:min(len(removable), alicloud.MaxRouteEntriesPerCall)] {
			changes = append(changes, &change{remove: &removable[at], proven: !removals.counted(&removable[at])})
		}
		if !held {
			changes = append(changes, creations[plan.table]...)
		}
	}
	d.name(changes)
	return changes
}

func (p *pass) chooseCreations(t *table, plan *plan, known subnets, now time.Time) []*change {
	var changes []*change
	room, until := p.quota.room(t, now)
	for i := range plan.create {
		if len(changes) == room {
			p.retryAt(until)
			break
		}
		route := &plan.create[i]
		cidr := netip.MustParsePrefix(route.CIDR)
		if until := p.retries.until(routeKey{plan.table, cidr}, route.InstanceID, now); !until.IsZero() {
			p.retryAt(until)
			continue
		}
		if known.obstacle(cidr) == "" {
			changes = append(changes, &change{create: route})
		}
	}
	return changes
}

// hold reports whether so many new routes wait for further ones.
func (p *pass) hold(creations, arriving int, ready, now time.Time) bool {
	if p.held.IsZero() {
		p.held = now
	}
	until := holdUntil(creations, p.opts.BatchSize, arriving, p.held, ready, now)
	if until.IsZero() {
		p.held = time.Time{}
		return false
	}
	p.holding = true
	p.retryAt(until)
	return true
}

// holdUntil is until when new routes wait that fill no batch: while the cloud would refuse one anyway, and, while further nodes
// are about to join, for [collectFor]. Zero says that they do not wait.
func holdUntil(creations, batch, arriving int, since, ready, now time.Time) time.Time {
	if creations == 0 || creations >= batch {
		return time.Time{}
	}
	until := ready
	if collected := since.Add(collectFor); arriving > 0 && collected.After(until) {
		until = collected
	}
	if !until.After(now) {
		return time.Time{}
	}
	return until
}

// carryOut makes the changes and remembers what failed.
func (p *pass) carryOut(ctx context.Context, d *desired, changes []*change) {
	began := time.Now()
	p.writer.apply(ctx, changes)
	taken := map[string][]string{} // CIDRs by table
	for _, c := range changes {
		observeChange(c)
		if c.create != nil && alicloud.IsDuplicate(c.err) {
			taken[c.create.TableID] = append(taken[c.create.TableID], c.create.CIDR)
		}
		switch {
		case ctx.Err() != nil:
		case c.create == nil:
			p.removed(ctx, c)
		case c.err != nil:
			p.failed(ctx, c, d)
		default:
			observeLatency("create", began)
			p.created(c, d, began)
		}
	}
	for table, cidrs := range taken {
		p.writer.lookUp(ctx, table, cidrs)
	}
}

func (p *pass) created(c *change, d *desired, began time.Time) {
	cidr := netip.MustParsePrefix(c.create.CIDR)
	node := d.routes[cidr].node
	p.retries.forget(routeKey{c.create.TableID, cidr})
	p.report.events.Resolve(events.Of(node), reasonCreateFailed)
	p.report.events.Emit(events.Subject{UID: node.UID, Name: c.String()}, events.Event{
		Object: node, Type: corev1.EventTypeNormal, Reason: reasonCreated, Outcome: fmt.Sprint(began.UnixNano()),
		Message: fmt.Sprintf("Created route %s to %s in %s", cidr, c.create.InstanceID, c.create.TableID),
	})
}

func (p *pass) failed(ctx context.Context, c *change, d *desired) {
	cidr := netip.MustParsePrefix(c.create.CIDR)
	node := d.routes[cidr].node
	klog.FromContext(ctx).Error(c.err, "Route not created", "node", klog.KObj(node))
	now := time.Now()
	if alicloud.IsQuota(c.err) {
		entries := p.writer.entriesOf(c.create.TableID)
		p.quota.refused(c.create.TableID, entries, now)
		p.report.full(c.create.TableID, entries, node, c.err)
		return
	}
	failure := p.retries.failed(routeKey{c.create.TableID, cidr}, c.create.InstanceID, c.err, now)
	switch {
	case failure.duplicates > 1:
		p.report.events.Warnf(node, reasonConflict, "Route table %s already has an entry for the pod CIDR %s that this program cannot see, for example one of a "+
			"CEN or of a VPN gateway; the node's pods cannot be reached. Remove the entry, or give the node another pod CIDR: %v", c.create.TableID, cidr, c.err)
	case failure.duplicates > 0, alicloud.IsBusy(c.err) && failure.attempts < busyAttempts:
		// The next read shows whose entry it is; the next attempt finds the cloud idle.
	default:
		p.report.events.Warnf(node, reasonCreateFailed, "The route for pod CIDR %s is not there yet: %v", cidr, c.err)
	}
}

func (p *pass) removed(ctx context.Context, c *change) {
	logger := klog.FromContext(ctx)
	if c.err != nil {
		logger.Error(c.err, "Route not deleted")
		return
	}
	if !c.proven {
		p.writer.noteRemoval(c)
	}
	logger.Info("Deleted route", "cidr", c.remove.CIDR, "instance", hopOf(c.remove), "table", c.remove.TableID)
}

// forgetRefusals makes everything due that failed.
func (p *pass) forgetRefusals() {
	p.retries = newRetries()
	clear(p.quota)
	p.writer.forgetFailures()
}

// next decides when the next pass is due without an event. settle is how long the cloud was seen to need for a batch.
func (p *pass) next(d *desired, tables []*table, plans []*plan, changes int, settle time.Duration) time.Time {
	now := time.Now()
	due := p.drift
	soon := func(at time.Time) {
		if at.Before(due) {
			due = at
		}
	}
	if !p.retry.IsZero() {
		soon(p.retry)
	}
	for _, node := range d.withoutCIDR {
		if at := now.Add(cidrGrace - now.Sub(node.CreationTimestamp.Time)); at.After(now) {
			soon(at)
		}
	}
	switch {
	case changes > 0 || p.holding:
		// The next batch follows; a read only when one is due, or nothing is left to write.
		p.poll, p.polls = time.Time{}, 0
		if slices.ContainsFunc(tables, func(t *table) bool { return t.confirmDue(now) }) {
			p.readAfter = now
			soon(now)
		}
		if changes > 0 {
			soon(now)
		}
	case !slices.ContainsFunc(plans, (*plan).settling):
		p.poll, p.polls = time.Time{}, 0
	default:
		if !now.Before(p.poll) {
			p.poll = now.Add(confirmAfter(p.polls, settle))
			p.polls++
		}
		soon(p.poll)
	}
	return due
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
