package vpcroute

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Times of a pass.
const (
	// confirmEvery is how long after a batch its table is read although more batches wait: nodes whose routes work by
	// then need not wait for the last batch.
	confirmEvery = 5 * time.Second
	// firstLook is the wait before a read that hopes for a fast cloud.
	firstLook = 50 * time.Millisecond
	// againConfirm and maxConfirm bound the wait between further looks.
	againConfirm = 200 * time.Millisecond
	maxConfirm   = 5 * time.Second
	// cidrGrace is how long a new node may be without pod CIDR before that is told: the kube-controller-manager assigns
	// it within a second or two.
	cidrGrace = 30 * time.Second
)

// pass is one comparison of nodes and tables, at most one batch of writes per table and kind, and what must be remembered
// until the next one. It is used by one goroutine.
type pass struct {
	c       *Controller
	backoff backoff
	quota   tableQuota
	// readAfter is the oldest read that is still good enough.
	readAfter time.Time
	// drift and poll are when the tables are to be read again: for what others changed, and for what the cloud is still
	// at work on. poll is zero when nothing settles; polls counts the reads for it.
	drift, poll time.Time
	polls       int
	// retry is when the first route may be tried again that this pass left out because it failed; zero for none.
	retry time.Time
}

func newPass(c *Controller) *pass {
	return &pass{c: c, backoff: backoff{}, quota: tableQuota{}}
}

// run makes the pass and returns when the next one is due if nothing happens.
func (p *pass) run(ctx context.Context) (time.Time, error) {
	defer observeLatency("reconcile", time.Now())
	d, err := p.c.writer.desired(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	drifting := !now.Before(p.drift)
	if drifting || (!p.poll.IsZero() && !now.Before(p.poll)) {
		p.readAfter = now
	}
	tables, err := p.c.writer.read(ctx, p.readAfter)
	if err != nil {
		return time.Time{}, err
	}
	if drifting {
		p.drift = now.Add(jittered(p.c.opts.Config.Period))
	}
	if !p.c.opts.SkipSourceDestCheck {
		if p.c.checks.want(d) {
			p.c.queue.add(taskChecks, 0)
		}
	}
	plans := p.plan(d, tables)
	if drifting && p.unowned(ctx, d, plans) {
		plans = p.plan(d, tables)
	}
	p.forget(plans)
	p.emit(d, tables, plans)
	p.c.conditions.set(wantedConditions(d, plans))

	changes, err := p.choose(ctx, d, tables, plans, now)
	if err != nil {
		return time.Time{}, err
	}
	p.settle(ctx, d, changes)
	return p.next(d, tables, plans, len(changes)), nil
}

func (p *pass) plan(d *desired, tables []*table) []*plan {
	plans := make([]*plan, len(tables))
	for i, t := range tables {
		plans[i] = diff(d, t, p.c.opts.Config)
	}
	return plans
}

// forget drops what is remembered of routes that are not to be created any more.
func (p *pass) forget(plans []*plan) {
	missing := map[routeKey]bool{}
	for _, plan := range plans {
		for cidr, s := range plan.states {
			missing[routeKey{plan.table, cidr}] = s == stateMissing
		}
	}
	maps.DeleteFunc(p.backoff, func(key routeKey, _ failure) bool { return !missing[key] })
}

// choose takes the next batch of each table: up to one call of deletions and one of creations. More would keep routes
// waiting that are wanted since.
func (p *pass) choose(ctx context.Context, d *desired, tables []*table, plans []*plan, now time.Time) ([]*change, error) {
	p.retry = time.Time{}
	var changes []*change
	for i, plan := range plans {
		for at := range plan.remove[:min(len(plan.remove), alicloud.MaxRouteEntriesPerCall)] {
			changes = append(changes, &change{remove: &plan.remove[at]})
		}
		creations, err := p.chooseCreations(ctx, d, tables[i], plan, now)
		if err != nil {
			return nil, err
		}
		changes = append(changes, creations...)
	}
	return changes, nil
}

func (p *pass) chooseCreations(ctx context.Context, d *desired, t *table, plan *plan, now time.Time) ([]*change, error) {
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
		ok, err := p.c.writer.guardrail.allowed(ctx, p.c.events, d.routes[cidr].node, cidr)
		if err != nil {
			return nil, err
		}
		if ok {
			changes = append(changes, &change{create: route})
		}
	}
	return changes, nil
}

// retryAt makes the next pass come at that time at the latest; zero is no time.
func (p *pass) retryAt(at time.Time) {
	if !at.IsZero() && (p.retry.IsZero() || at.Before(p.retry)) {
		p.retry = at
	}
}

// settle carries the changes out and remembers what failed.
func (p *pass) settle(ctx context.Context, d *desired, changes []*change) {
	began := time.Now()
	p.c.writer.apply(ctx, changes)
	now := time.Now()
	for _, c := range changes {
		observeChange(c)
		if ctx.Err() != nil {
			continue
		}
		if c.create == nil {
			p.removed(ctx, c)
			continue
		}
		cidr := netip.MustParsePrefix(c.create.CIDR)
		key, node := routeKey{c.create.TableID, cidr}, d.routes[cidr].node
		if c.err == nil {
			observeLatency("create", began)
			p.backoff.succeeded(key)
			p.c.events.solved(node.UID, reasonCreateFailed)
			p.c.events.normal(node, reasonCreated, "Created route %s to %s in %s", cidr, c.create.InstanceID, c.create.TableID)
			continue
		}
		klog.FromContext(ctx).Error(c.err, "Route not created", "node", klog.KObj(node))
		if alicloud.IsQuota(c.err) {
			p.quotaReached(c.create.TableID, node, c.err, now)
			continue
		}
		p.backoff.failed(key, c.create.InstanceID, c.err, now)
		if !alicloud.IsDuplicate(c.err) {
			p.c.events.warn(node, reasonCreateFailed, "The route for pod CIDR %s is not there yet: %v", cidr, c.err)
		}
	}
}

func (p *pass) removed(ctx context.Context, c *change) {
	logger := klog.FromContext(ctx)
	if c.err != nil {
		logger.Error(c.err, "Route not deleted")
		return
	}
	logger.V(2).Info("Deleted route", "cidr", c.remove.CIDR, "instance", hopOf(c.remove), "table", c.remove.TableID)
}

// next decides when to look again without an event, and how fresh the tables must be then.
func (p *pass) next(d *desired, tables []*table, plans []*plan, changes int) time.Time {
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
	for _, w := range d.withoutCIDR {
		if at := w.CreationTimestamp.Add(cidrGrace); at.After(now) {
			soon(at)
		}
	}
	if changes > 0 {
		// The next batch follows at once; a read only when one is due, or nothing is left to write.
		p.poll, p.polls = time.Time{}, 0
		if slices.ContainsFunc(tables, func(t *table) bool { return !t.unread.IsZero() && now.Sub(t.unread) >= confirmEvery }) {
			p.readAfter = now
		}
		return now
	}
	if !slices.ContainsFunc(plans, (*plan).settling) {
		p.poll, p.polls = time.Time{}, 0
		return due
	}
	if !now.Before(p.poll) {
		p.poll = now.Add(confirmAfter(p.polls, p.c.writer.settleTime()))
		p.polls++
	}
	soon(p.poll)
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
		return firstLook
	case 1:
		return likelySettle - firstLook
	default:
		return min(maxConfirm, againConfirm<<min(reads-2, 5))
	}
}

// wantedConditions says of every node with a wanted route whether all its routes, of both IP versions, are available in
// all tables. A node with a pod CIDR that cannot be routed is not available either; where the VPC has no IPv6, an IPv4
// route is enough.
func wantedConditions(d *desired, plans []*plan) map[string]conditionFor {
	wanted := map[string]conditionFor{}
	set := func(node *corev1.Node, available bool) {
		before, known := wanted[node.Name]
		wanted[node.Name] = conditionFor{uid: node.UID, available: available && (!known || before.available)}
	}
	for cidr, w := range d.routes {
		available := len(plans) > 0
		for _, plan := range plans {
			available = available && plan.states[cidr] == stateAvailable
		}
		set(w.node, available)
	}
	for _, problem := range d.problems {
		_, routed := wanted[problem.node.Name]
		if problem.reason != reasonIPv6 || !routed {
			set(problem.node, false)
		}
	}
	return wanted
}

// tell writes the events of this pass.
func (p *pass) emit(d *desired, tables []*table, plans []*plan) {
	p.emitProblems(d.problems)
	for _, node := range d.withoutCIDR {
		if time.Since(node.CreationTimestamp.Time) >= cidrGrace {
			p.c.events.warn(node, reasonNoCIDR, "The node has no pod CIDR, so it gets no route. The kube-controller-manager assigns them: it needs "+
				"--allocate-node-cidrs=true and --cluster-cidr, with free ranges left")
		}
	}
	for i, plan := range plans {
		conflictsGauge.WithLabelValues(plan.table).Set(float64(len(plan.conflicts)))
		for cidr, e := range plan.conflicts {
			p.c.events.warn(d.routes[cidr].node, reasonConflict, "Route table %s has an entry for the pod CIDR %s that leads to %v and is not one of a "+
				"node; it stays, and the node's pods cannot be reached. Remove the entry, or give the node another pod CIDR", plan.table, cidr, e.NextHops)
		}
		p.emitQuota(d, tables[i], plan)
	}
}

// emitProblems writes an event on each node that has a problem of its own. That there is no IPv6 is one of the cluster:
// one of its nodes is told.
func (p *pass) emitProblems(problems []problem) {
	ipv6 := false
	for _, problem := range problems {
		if problem.reason != reasonIPv6 {
			p.c.events.warn(problem.node, problem.reason, "%s", problem.message)
			continue
		}
		ipv6 = true
		if p.c.events.first(ofCluster, reasonIPv6) {
			p.c.events.recorder.Eventf(problem.node, corev1.EventTypeWarning, reasonIPv6, "%s. Other nodes are not told", problem.message)
		}
	}
	if !ipv6 {
		p.c.events.solved(ofCluster, reasonIPv6)
	}
}

// emitQuota warns once per table from 80 % of the configured quota. The event stands on the newest node: it is what used
// the quota up.
func (p *pass) emitQuota(d *desired, t *table, plan *plan) {
	used := t.custom + len(plan.create)
	newest := newestNode(d)
	key := types.UID("table/" + t.id)
	if used*100 < p.c.opts.Quota*80 || newest == nil {
		p.c.events.solved(key, reasonQuota)
		return
	}
	if p.c.events.first(key, reasonQuota) {
		p.c.events.recorder.Eventf(newest, corev1.EventTypeWarning, reasonQuota, "Route table %s holds or needs %d custom entries; the quota is taken to "+
			"be %d. Ask for a higher quota (vpc_quota_route_entrys_num) before it is used up", t.id, used, p.c.opts.Quota)
	}
}

func newestNode(d *desired) *corev1.Node {
	var newest *corev1.Node
	for _, w := range d.routes {
		if newest == nil || newest.CreationTimestamp.Before(&w.node.CreationTimestamp) {
			newest = w.node
		}
	}
	return newest
}
