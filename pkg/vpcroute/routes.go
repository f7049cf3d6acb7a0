package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

var _ cloudprovider.Routes = (*Routes)(nil)

// Routes lets the stock route controller work through the writer. This project's own controller does not need it; it is for
// programs that link the provider and start the stock controllers. That controller makes a call for each route, up to two hundred at
// once: the first one does what is to be done for all nodes, and the others find it done.
type Routes struct{ writer *Writer }

// NewRoutes returns the adapter over the writer.
func NewRoutes(writer *Writer) *Routes { return &Routes{writer} }

// ListRoutes removes what no node wants any more and may go, and lists the routes of nodes that work in every table. The stock controller,
// which begins each pass with it, takes listed routes for working, and would delete whatever it cannot explain.
func (r *Routes) ListRoutes(ctx context.Context, _ string) ([]*cloudprovider.Route, error) {
	o, err := r.writer.takeAndObserve(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	defer r.writer.turn.Release(1)
	r.writer.carryOut(ctx, o, o.removable())
	var routes []*cloudprovider.Route
	for cidr, want := range o.routes {
		if o.available(cidr) {
			routes = append(routes, &cloudprovider.Route{
				Name: cidr.String(), TargetNode: types.NodeName(want.node.Name), DestinationCIDR: cidr.String(),
			})
		}
	}
	return routes, nil
}

// available reports whether a wanted route works in all tables that can be read.
func (o *observation) available(cidr netip.Prefix) bool {
	return !slices.ContainsFunc(o.plans, func(plan *plan) bool { return plan.err == nil && plan.states[cidr] != stateAvailable })
}

// CreateRoute has the route made in every table and waits a short while for it to be available. An entry of ours that leads
// elsewhere is replaced. While the cloud is at work the error is an API conflict, after which the stock controller tries again.
func (r *Routes) CreateRoute(ctx context.Context, _, _ string, asked *cloudprovider.Route) error {
	cidr, err := netip.ParsePrefix(asked.DestinationCIDR)
	if err != nil {
		return fmt.Errorf("route destination %q: %w", asked.DestinationCIDR, err)
	}
	deadline := time.Now().Add(waits.RouteOfAdapter)
	for attempt, notBefore := 0, (time.Time{}); ; attempt++ {
		done, settle, err := r.advance(ctx, asked, cidr.Masked(), notBefore)
		if err != nil || done {
			return err
		}
		wait := confirmAfter(attempt, settle)
		if time.Now().Add(wait).After(deadline) {
			return apierrors.NewConflict(schema.GroupResource{Resource: "routes"}, asked.DestinationCIDR,
				errors.New("the cloud is still at work on it"))
		}
		if err := sleep.For(ctx, wait); err != nil {
			return err
		}
		notBefore = time.Now()
	}
}

// advance makes the next changes towards the routes of all nodes, and reports whether this one is available, and how long the cloud was
// seen to need. It refuses a route that the nodes do not want: the caller may have read them earlier, or does not look for pod CIDRs that
// overlap.
func (r *Routes) advance(
	ctx context.Context, asked *cloudprovider.Route, cidr netip.Prefix, notBefore time.Time,
) (done bool, settle time.Duration, err error) {
	o, err := r.writer.takeAndObserve(ctx, notBefore)
	if err != nil {
		return false, 0, err
	}
	defer r.writer.turn.Release(1)
	want, ok := o.routes[cidr]
	switch {
	case !ok || want.node.Name != string(asked.TargetNode):
		return false, 0,
			fmt.Errorf("route destination %s: not the pod CIDR of node %s, or one that overlaps with that of another node, or an IPv6 range "+
				"without IPv6 in %s", cidr, asked.TargetNode, r.writer.opts.Config.VPCID)
	case o.available(cidr):
		return true, 0, nil
	}
	changes := r.writer.creations(o, time.Now())
	for _, plan := range o.plans {
		changes = append(changes, plan.removable(decision{})...) // what is in the way of routes
	}
	r.writer.carryOut(ctx, o, changes)
	for _, plan := range o.plans {
		if e, conflict := plan.conflicts[cidr]; conflict {
			return false, 0,
				fmt.Errorf("route table %s has an entry for %s that leads to %v and that this cluster does not own", plan.id, cidr, e.NextHops)
		}
		// A duplicate was made by somebody else since the read: the next one shows whose it is.
		err = r.writer.refusal(routeKey{plan.id, route{cidr, want.instance}})
		if err != nil && !alicloud.IsDuplicate(err) && !alicloud.IsAmbiguous(err) && !alicloud.IsBusy(err) {
			return false, 0, err
		}
	}
	return false, r.writer.pace.settle, nil
}

// DeleteRoute leaves to the next [Routes.ListRoutes] what may go: the stock controller calls it for listed routes that its own view of the
// nodes does not explain, and while it creates a route for the same CIDR.
func (r *Routes) DeleteRoute(context.Context, string, *cloudprovider.Route) error { return nil }
