package vpcroute

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/klog/v2"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// pass is one comparison of nodes and tables, at most one batch of writes per table and kind, and what must be remembered
// until the next one. It is used by one goroutine.
type pass struct {
	opts       Options
	writer     *Writer
	report     reporter
	conditions *conditions
	checks     *sourceDest
	// startChecks makes the source/destination checks that wait run.
	startChecks func()

	schedule
	backoff backoff
	quota   tableQuota
	// settledBefore says that the last pass found nothing to change.
	settledBefore bool
	// managed are the tables of the last pass.
	managed []string
}

func newPass(c *Controller) *pass {
	return &pass{
		opts: c.opts, writer: c.writer, report: reporter{events: c.events}, conditions: c.conditions, checks: c.checks,
		startChecks: func() { c.queue.add(taskChecks, 0) }, backoff: backoff{}, quota: tableQuota{},
	}
}

// run makes the pass and returns when the next one is due if nothing happens.
func (p *pass) run(ctx context.Context) (time.Time, error) {
	defer observeLatency("reconcile", time.Now())
	now := time.Now()
	drifting := p.begin(now)
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
	if p.checks.want(routed) {
		p.startChecks()
	}
}

// view is what this pass knows about the nodes' networks.
func (p *pass) view(readings []reading, plans []*plan) view {
	known, _ := p.writer.network.remembered(neverRead)
	v := view{plans: plans, tableOf: known.tableOf, check: p.checks.state}
	if p.opts.SkipSourceDestCheck {
		v.check = func(string) checkState { return checkOff }
	}
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
	maps.DeleteFunc(p.backoff, func(key routeKey, _ failure) bool { return !missing[key] })
	return plans, removals
}

// emit writes the events and the figures of this pass.
func (p *pass) emit(d *desired, readings []reading, tables []*table, plans []*plan, removals decision) {
	newest := d.newest()
	known, _ := p.writer.network.remembered(neverRead)
	p.report.problems(problemsOf(d, plans, known))
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
	known, _ := p.writer.network.remembered(neverRead)
	creations := map[string][]*change{}
	most := 0
	for i, plan := range plans {
		creations[plan.table] = p.chooseCreations(tables[i], plan, known, now)
		most = max(most, len(creations[plan.table]))
	}
	held := p.hold(most, p.opts.BatchSize, d.arriving, p.writer.readyAt(), now)
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
		if until := p.backoff.until(routeKey{plan.table, cidr}, route.InstanceID, now); !until.IsZero() {
			p.retryAt(until)
			continue
		}
		if known.obstacle(cidr) == "" {
			changes = append(changes, &change{create: route})
		}
	}
	return changes
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
		if ctx.Err() != nil {
			continue
		}
		if c.create == nil {
			p.removed(ctx, c)
			continue
		}
		cidr := netip.MustParsePrefix(c.create.CIDR)
		node := d.routes[cidr].node
		if c.err != nil {
			p.failed(ctx, c, cidr, node)
			continue
		}
		observeLatency("create", began)
		p.backoff.succeeded(routeKey{c.create.TableID, cidr})
		p.report.events.Resolve(events.Of(node), reasonCreateFailed)
		p.report.events.Emit(events.Subject{UID: node.UID, Name: c.String()}, events.Event{
			Object: node, Type: corev1.EventTypeNormal, Reason: reasonCreated, Outcome: fmt.Sprint(began.UnixNano()),
			Message: fmt.Sprintf("Created route %s to %s in %s", cidr, c.create.InstanceID, c.create.TableID),
		})
	}
	for table, cidrs := range taken {
		p.writer.lookUp(ctx, table, cidrs)
	}
}

func (p *pass) failed(ctx context.Context, c *change, cidr netip.Prefix, node *corev1.Node) {
	klog.FromContext(ctx).Error(c.err, "Route not created", "node", klog.KObj(node))
	now := time.Now()
	if alicloud.IsQuota(c.err) {
		entries := p.writer.entriesOf(c.create.TableID)
		p.quota.refused(c.create.TableID, entries, now)
		p.report.full(c.create.TableID, entries, node, c.err)
		return
	}
	failure := p.backoff.failed(routeKey{c.create.TableID, cidr}, c.create.InstanceID, c.err, now)
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

// busyAttempts is how often an entry may be busy before an event says so.
const busyAttempts = 6

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
