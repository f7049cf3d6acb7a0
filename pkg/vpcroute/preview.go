package vpcroute

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Preview is what a controller would do.
type Preview struct {
	// Writes has one line for each change of the cloud.
	Writes []string
	// Problems are what keeps nodes from having routes, and nodes whose condition NetworkUnavailable would become True.
	Problems []string
}

// previewRounds is how many passes a preview plays: an entry in the way is removed in one, and the wanted one made in the next.
const previewRounds = 4

// Preview returns what a controller would write that starts now and finds nothing changed for some minutes, and writes nothing.
// It plays the steps of the controller's own passes on a copy of the tables. The node informer must have synced.
func (w *Writer) Preview(ctx context.Context) (Preview, error) {
	d, readings, err := w.observe(ctx, time.Now())
	if err != nil {
		return Preview{}, err
	}
	w.learn(d)
	tables, _, unread := readable(readings)
	if len(tables) == 0 {
		return Preview{}, unread
	}
	var p Preview
	if unread != nil {
		p.Problems = append(p.Problems, unread.Error())
	}
	known := w.network.current(ctx, neverRead)
	for _, t := range tables {
		w.lookUp(ctx, t.id, nil)
	}
	game := preview{w: w, d: d, tables: tables, known: known, removals: newRemovals(time.Now().Add(-startGrace)), evidence: w.evidence(time.Now()), now: time.Now()}
	game.prove(ctx)
	writes, plans, removals := game.play()
	p.Writes = writes
	for _, problem := range problemsOf(d, plans, known) {
		p.Problems = append(p.Problems, problem.node.Name+": "+problem.message)
	}
	p.Problems = append(p.Problems, game.doubts(ctx)...)
	if n := len(removals.withheld); n > 0 {
		p.Problems = append(p.Problems, fmt.Sprintf("%d routes without a node are kept: more than can be deleted at once, or there is no node, and nothing proves that their instances are gone", n))
	}
	v := view{plans: plans, tableOf: known.tableOf, check: func(string) checkState { return checkOff }}
	if !w.opts.SkipSourceDestCheck {
		checks, err := w.previewChecks(ctx, d)
		if err != nil {
			p.Problems = append(p.Problems, err.Error())
		}
		p.Writes = append(p.Writes, checks...)
	}
	p.Problems = append(p.Problems, w.losers(wantedConditions(d, v))...)
	return p, nil
}

// preview is a run of passes on a copy of the tables.
type preview struct {
	w        *Writer
	d        *desired
	tables   []*table
	known    subnets
	removals *removals
	evidence evidence
	now      time.Time
}

func (g *preview) compare() ([]*plan, decision) {
	plans := make([]*plan, len(g.tables))
	for i, t := range g.tables {
		plans[i] = diff(g.d, t, g.w.opts.Config, g.evidence)
	}
	return plans, g.removals.decide(surplusOf(plans), g.d, g.evidence, g.now)
}

// prove asks the cloud once for the instances of doubtful entries, and takes it that it would go on to answer the same.
func (g *preview) prove(ctx context.Context) {
	hops := doubtful(g.compare())
	if hops.Len() == 0 {
		return
	}
	visible, err := g.w.ask(ctx, g.d, hops)
	if err != nil {
		return
	}
	gone := hops.Difference(visible)
	g.evidence.gone = gone.Has
}

// play makes passes until nothing is left to write.
func (g *preview) play() (writes []string, plans []*plan, removals decision) {
	for range previewRounds {
		g.now = g.now.Add(surplusGrace)
		plans, removals = g.compare()
		written := len(writes)
		for i, plan := range plans {
			writes = append(writes, g.write(g.tables[i], plan, removals)...)
		}
		if len(writes) == written && removals.until.IsZero() {
			break
		}
	}
	return writes, plans, removals
}

// doubts are why the cloud may refuse what is planned: tables that hold more than they are taken to, and instances that it does not
// show in the VPC.
func (g *preview) doubts(ctx context.Context) (lines []string) {
	for _, t := range g.tables {
		if quota := g.w.opts.Quota(); quota.nearlyFull(0, t.custom) {
			lines = append(lines, fmt.Sprintf("route table %s would hold %d custom entries; %s", t.id, t.custom, quota))
		}
	}
	if len(g.d.instances) == 0 {
		return lines
	}
	ids := slices.Sorted(maps.Keys(g.d.instances))
	found, err := g.w.opts.API.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: ids, VPCID: g.w.opts.Config.VPCID})
	if err != nil {
		return append(lines, fmt.Sprintf("cannot find out whether the nodes' instances are in %s: %v", g.w.opts.Config.VPCID, err))
	}
	shown := sets.New[string]()
	for i := range found {
		shown.Insert(found[i].ID)
	}
	for _, id := range ids {
		if !shown.Has(id) {
			lines = append(lines, fmt.Sprintf("%s: ECS does not show instance %s in %s, so the cloud may refuse its route", g.d.instances[id].Name, id, g.w.opts.Config.VPCID))
		}
	}
	return lines
}

// write changes the copy of a table as a pass would, and as if the cloud accepted everything.
func (g *preview) write(t *table, p *plan, removals decision) (writes []string) {
	now := time.Now()
	removable := p.removable(removals)
	for i := range removable {
		writes = append(writes, (&change{remove: &removable[i]}).String())
		t.removed(removable[i], now)
	}
	for i := range p.create {
		if g.known.obstacle(netip.MustParsePrefix(p.create[i].CIDR)) == "" {
			writes = append(writes, (&change{create: &p.create[i]}).String())
			t.created(p.create[i], now)
		}
	}
	for cidr, e := range t.entries {
		e.Status = alicloud.RouteAvailable
		t.entries[cidr] = e
	}
	return writes
}

// previewChecks lists the source/destination checks that are on.
func (w *Writer) previewChecks(ctx context.Context, d *desired) ([]string, error) {
	byAddress := map[string]string{}
	for _, want := range d.routes {
		if address := nodes.InternalIP(want.node); address != "" {
			byAddress[address] = want.instance
		}
	}
	if len(byAddress) == 0 {
		return nil, nil
	}
	found, err := interfacesOf(ctx, w.opts.API, w.opts.Config.VPCID, byAddress)
	if err != nil {
		return nil, err
	}
	lines := sets.New[string]()
	for _, eni := range found {
		if eni.SourceDestCheck {
			lines.Insert(fmt.Sprintf("switch off the source/destination check of %s of %s", eni.ID, eni.InstanceID))
		}
	}
	return sets.List(lines), nil
}

// losers lists the nodes whose network is said to be available, and would not be any more.
func (w *Writer) losers(wanted map[string]conditionFor) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		node := w.node(name)
		if node == nil || wanted[name].available {
			continue
		}
		if condition := nodes.Condition(node, corev1.NodeNetworkUnavailable); condition != nil && condition.Status == corev1.ConditionFalse {
			lines = append(lines, name+": NetworkUnavailable becomes True, so no further pods are scheduled to the node")
		}
	}
	return lines
}
