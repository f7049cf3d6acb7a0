package vpcroute

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// proofs says when the cloud is to be asked for which instance. One that it shows is asked for again after a period, one that
// it does not show soon, for it takes several answers to prove that it is gone.
type proofs map[string]time.Time

// doubtful returns the instances of entries that may only go once these are proven gone.
func doubtful(plans []*plan, removals decision) sets.Set[string] {
	hops := sets.New[string]()
	for _, plan := range plans {
		for _, e := range plan.unowned {
			hops.Insert(e.hop)
		}
	}
	for r := range removals.withheld {
		hops.Insert(r.instance)
	}
	return hops
}

// retain forgets all other instances.
func (p proofs) retain(hops sets.Set[string]) {
	maps.DeleteFunc(p, func(hop string, _ time.Time) bool { return !hops.Has(hop) })
}

// due returns those of the instances that are to be asked for now.
func (p proofs) due(hops sets.Set[string], now time.Time) sets.Set[string] {
	due := sets.New[string]()
	for hop := range hops {
		if !now.Before(p[hop]) {
			due.Insert(hop)
		}
	}
	return due
}

// note sets when the instances are asked for again.
func (p proofs) note(asked, visible sets.Set[string], period time.Duration, now time.Time) {
	for hop := range asked {
		p[hop] = now.Add(lookupInterval)
		if visible.Has(hop) {
			p[hop] = now.Add(period)
		}
	}
}

// next returns when the first instance is asked for again, zero for never.
func (p proofs) next() time.Time {
	if len(p) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(slices.Collect(maps.Values(p)), time.Time.Compare)
}

// maxControls is how many instances of nodes are asked for with each look-up.
const maxControls = 5

// controlsOf returns instances of nodes, of ready ones first. An answer proves nothing unless it shows all of them.
func controlsOf(d *desired) []string {
	var ready, other []string
	for _, instance := range slices.Sorted(maps.Keys(d.instances)) {
		if nodes.Ready(d.instances[instance]) {
			ready = append(ready, instance)
		} else {
			other = append(other, instance)
		}
	}
	all := slices.Concat(ready, other)
	return all[:min(len(all), maxControls)]
}

// ask asks the cloud for the instances, and for controls beside them. It returns those that the cloud shows. The error says why
// the answer proves nothing.
func (w *Writer) ask(ctx context.Context, d *desired, hops sets.Set[string]) (sets.Set[string], error) {
	controls := sets.New(controlsOf(d)...).Difference(hops)
	if controls.Len() == 0 {
		return nil, fmt.Errorf("no node has an instance to compare with")
	}
	found, err := w.opts.API.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: sets.List(hops.Union(controls))})
	if err != nil {
		return nil, fmt.Errorf("look up instances of routes: %w", err)
	}
	visible := sets.New[string]()
	for i := range found {
		visible.Insert(found[i].ID)
	}
	if !visible.IsSuperset(controls) {
		return visible.Intersection(hops), fmt.Errorf("look up instances of routes: DescribeInstances does not even show %v, which nodes have",
			sets.List(controls.Difference(visible)))
	}
	return visible.Intersection(hops), nil
}

// prove asks the cloud for the instances of which it is time, and remembers which of them it does not show. It reports whether
// it asked, and when it is time again.
func (w *Writer) prove(ctx context.Context, d *desired, hops sets.Set[string], now time.Time) (asked bool, next time.Time) {
	if len(d.instances) == 0 {
		return false, time.Time{} // there is nothing to compare an answer with
	}
	w.mu.Lock()
	w.proofs.retain(hops)
	due := w.proofs.due(hops, now)
	next = w.proofs.next()
	w.mu.Unlock()
	if due.Len() == 0 {
		return false, next
	}
	visible, err := w.ask(ctx, d, due)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot determine whether the instances of routes are gone; keeping the routes", "instances", due.Len())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now = time.Now()
	if err == nil {
		w.absences.note(due, visible, now)
	} else {
		w.absences.note(visible, visible, now)
	}
	w.absences.forget(now)
	w.proofs.note(due, visible, w.opts.Config.Period, now)
	return true, w.proofs.next()
}
