package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
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
type Routes struct {
	writer *Writer
	config Config
}

// NewRoutes returns the adapter over the writer.
func NewRoutes(writer *Writer, config Config) *Routes { return &Routes{writer: writer, config: config} }

// ListRoutes lists the routes that are ours. Foreign entries are left out, because the stock controller deletes whatever
// it cannot explain; so are entries that may not go yet, and entries that do not work in every table yet, because it takes listed
// ones for working.
func (r *Routes) ListRoutes(ctx context.Context, _ string) ([]*cloudprovider.Route, error) {
	o, err := r.writer.takeAndObserve(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	defer r.writer.turn.Release(1)
	nodes := map[route]string{} // their names, empty where the node is gone
	for cidr, want := range o.routes {
		if o.available(cidr) {
			nodes[route{cidr, want.instance}] = want.node.Name
		}
	}
	for _, c := range o.removable() {
		nodes[c.route] = ""
		if node := o.instances[c.instance]; node != nil {
			nodes[c.route] = node.Name
		}
	}
	routes := make([]*cloudprovider.Route, 0, len(nodes))
	for at, node := range nodes {
		routes = append(routes, &cloudprovider.Route{
			Name: routeName(at), TargetNode: types.NodeName(node), DestinationCIDR: at.cidr.String(), Blackhole: node == "",
		})
	}
	return routes, nil
}

// available reports whether a wanted route works in all tables that can be read.
func (o *observation) available(cidr netip.Prefix) bool {
	for _, plan := range o.plans {
		if plan.err == nil && plan.states[cidr] != stateAvailable {
			return false
		}
	}
	return true
}

// CreateRoute has the route made in every table and waits a short while for it to be available. An entry of ours that leads
// elsewhere is replaced. While the cloud is at work the error is an API conflict, after which the stock controller tries again.
func (r *Routes) CreateRoute(ctx context.Context, _, _ string, asked *cloudprovider.Route) error {
	cidr, err := netip.ParsePrefix(asked.DestinationCIDR)
	if err != nil {
		return fmt.Errorf("route destination %q: %w", asked.DestinationCIDR, err)
	}
	deadline := time.Now().Add(waits.RouteOfAdapter)
	var notBefore time.Time
	for attempt := 0; ; attempt++ {
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
	if want, ok := o.routes[cidr]; !ok || want.node.Name != string(asked.TargetNode) {
		return false, 0,
			fmt.Errorf("route destination %s: not the pod CIDR of node %s, or one that overlaps with that of another node, or an IPv6 range "+
				"without IPv6 in %s", cidr, asked.TargetNode, r.config.VPCID)
	}
	if o.available(cidr) {
		return true, 0, nil
	}
	changes, _ := r.writer.creations(o, time.Now())
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
		err = r.writer.refusal(routeKey{plan.id, route{cidr, o.routes[cidr].instance}})
		if err != nil && !alicloud.IsDuplicate(err) && !alicloud.IsAmbiguous(err) && !alicloud.IsBusy(err) {
			return false, 0, err
		}
	}
	return false, r.writer.pace.enough, nil
}

// DeleteRoute removes a listed route from every table, if it may still go and leads where it led then: the stock controller deletes and
// creates at the same time when a CIDR moves.
func (r *Routes) DeleteRoute(ctx context.Context, _ string, asked *cloudprovider.Route) error {
	at, err := parseRouteName(asked.Name)
	if err != nil {
		return err
	}
	o, err := r.writer.takeAndObserve(ctx, time.Time{})
	if err != nil {
		return err
	}
	defer r.writer.turn.Release(1)
	changes := o.removable()
	r.writer.carryOut(ctx, o, changes)
	var errs []error
	for _, c := range changes {
		if c.route == at {
			errs = append(errs, c.err)
		}
	}
	return errors.Join(errs...)
}

// routeName holds what DeleteRoute needs to know of a listed route: where it led. The node may be gone by then.
func routeName(at route) string { return at.instance + "/" + at.cidr.String() }

func parseRouteName(name string) (route, error) {
	hop, text, ok := strings.Cut(name, "/")
	cidr, err := netip.ParsePrefix(text)
	if !ok || err != nil {
		return route{}, fmt.Errorf("route name %q: expected one of ListRoutes, \"<instance>/<CIDR>\"", name)
	}
	return route{cidr: cidr, instance: hop}, nil
}
