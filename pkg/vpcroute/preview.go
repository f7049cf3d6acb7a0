package vpcroute

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Preview is what a controller would do.
type Preview struct {
	// Writes has one line for each change of the cloud.
	Writes []string
	// Problems are what keeps nodes from having routes.
	Problems []string
}

// Preview returns what a controller would write that starts now and finds nothing changed for some minutes, and writes nothing.
// The node informer must have synced.
func (w *Writer) Preview(ctx context.Context) (Preview, error) {
	o, err := w.takeAndObserve(ctx, time.Now())
	if err != nil {
		return Preview{}, err
	}
	defer w.turn.Release(1)
	w.foresee(ctx, o)
	known := w.network.subnets
	var p Preview
	for _, plan := range o.plans {
		if plan.err != nil {
			p.Problems = append(p.Problems, plan.err.Error())
			continue
		}
		writes, holds := plan.writes(o.desired, o.removals, known)
		p.Writes = append(p.Writes, writes...)
		if quota := w.opts.Quota(); quota.nearlyFull(0, holds) {
			p.Problems = append(p.Problems, fmt.Sprintf("route table %s would hold %d custom entries; %s", plan.id, holds, quota))
		}
	}
	for _, problem := range problemsOf(o, known) {
		p.Problems = append(p.Problems, problem.node.Name+": "+problem.message)
	}
	if n := len(o.removals.withheld); n > 0 {
		p.Problems = append(p.Problems,
			fmt.Sprintf("%d routes without a node are kept: more than can be deleted at once, or there is no node, and nothing proves that their instances are gone", n))
	}
	if !w.opts.SkipSourceDestCheck {
		checks, err := w.previewChecks(ctx, o.desired)
		if err != nil {
			p.Problems = append(p.Problems, err.Error())
		}
		p.Writes = append(p.Writes, checks...)
	}
	return p, nil
}

// foresee compares as some minutes from now, as if the cloud went on to answer as it does.
func (w *Writer) foresee(ctx context.Context, o *observation) {
	now, removals := time.Now(), newRemovals()
	known := w.evidence(now)
	w.compare(o, known, removals, now)
	now = now.Add(waits.RouteMoved)
	w.compare(o, known, removals, now)
	if hops := o.doubtful(); hops.Len() > 0 {
		if shown, err := w.ask(ctx, o.desired, hops); err == nil {
			known.gone = hops.Difference(shown).Has
		}
	}
	w.compare(o, known, removals, now)
}

// writes lists what the plan changes, and returns how many custom entries the table holds afterwards. A route that follows the removal of
// the entry in its place is among them.
func (p *plan) writes(d *desired, removals decision, known subnets) (lines []string, holds int) {
	creations := slices.Clone(p.create)
	removable := p.removable(removals)
	for _, c := range removable {
		lines = append(lines, c.String())
		if want, ok := d.routes[c.cidr]; ok {
			creations = append(creations, route{c.cidr, want.instance})
		}
	}
	holds = p.custom - len(removable)
	for _, missing := range creations {
		if known.obstacle(missing.cidr) == "" {
			lines = append(lines, (&change{table: p.id, route: missing}).String())
			holds++
		}
	}
	return lines, holds
}

// previewChecks lists the source/destination checks that are on.
func (w *Writer) previewChecks(ctx context.Context, d *desired) ([]string, error) {
	wanted := map[string]check{}
	for _, want := range d.routes {
		if address := nodes.FirstAddress(nodes.OwnAddresses(want.node)); address.IsValid() {
			wanted[want.instance] = check{address: address}
		}
	}
	found, err := interfacesOf(ctx, w.opts.API, w.opts.Config.VPCID, wanted)
	lines := sets.New[string]()
	for instance, eni := range found {
		if eni.SourceDestCheck {
			lines.Insert(fmt.Sprintf("switch off the source/destination check of %s of %s", eni.ID, instance))
		}
	}
	return sets.List(lines), err
}

// Orphan is an entry that this cluster has made and no node wants.
type Orphan struct {
	alicloud.RouteEntry
	// Instance is the one that it leads to, empty for none or several.
	Instance string
	Reason   string
}

// Orphans returns the entries with this cluster's mark in the managed tables that no node wants. Those inside of the cluster CIDR go by
// themselves unless something keeps the controller from removing them; those outside, left behind by another --cluster-cidr, never do. The
// node informer must have synced. What is returned beside an error is not all.
func (w *Writer) Orphans(ctx context.Context) (orphans []Orphan, err error) {
	o, err := w.takeAndObserve(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	defer w.turn.Release(1)
	config := w.opts.Config
	for _, id := range o.IDs {
		entries, readErr := w.opts.API.DescribeRouteEntries(ctx, id, true)
		if readErr != nil {
			return orphans, fmt.Errorf("read route table %s: %w", id, readErr)
		}
		for i := range entries {
			e, ok := entryOf(entries[i])
			switch _, wanted := o.routes[e.cidr]; {
			case !ok || !config.made(e):
			case !config.covers(e.cidr):
				orphans = append(orphans, Orphan{e.RouteEntry, e.instance, fmt.Sprintf("it is outside of --cluster-cidr %v", config.ClusterCIDRs)})
			case !wanted && !o.retained.Has(e.cidr):
				orphans = append(orphans, Orphan{e.RouteEntry, e.instance, "no Node has this pod CIDR"})
			}
		}
	}
	return orphans, nil
}
