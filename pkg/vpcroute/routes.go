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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

var _ cloudprovider.Routes = (*Routes)(nil)

// availableWithin bounds the wait of one CreateRoute for the cloud to make the entry available. The stock controller
// patches the nodes' conditions only after all its calls have returned.
const availableWithin = 20 * time.Second

// Routes lets the stock route controller work through the writer. This project's own controller does not need it; it is
// for programs that link the provider and start the stock controllers.
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
	d, tables, err := r.observe(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	plans, removals := r.writer.compare(d, tables, time.Now())
	if asked, _ := r.writer.prove(ctx, d, doubtful(plans, removals), time.Now()); asked {
		plans, removals = r.writer.compare(d, tables, time.Now())
	}
	var routes []*cloudprovider.Route
	listed := map[string]bool{}
	list := func(at route, node string) {
		name := routeName(at.instance, at.cidr)
		if !listed[name] {
			listed[name] = true
			routes = append(routes, &cloudprovider.Route{
				Name: name, TargetNode: types.NodeName(node), DestinationCIDR: at.cidr.String(), Blackhole: node == "",
			})
		}
	}
	for cidr, want := range d.routes {
		if available(tables, cidr, want.instance) {
			list(route{cidr: cidr, instance: want.instance}, want.node.Name)
		}
	}
	for i, plan := range plans {
		for _, e := range plan.removable(removals) {
			cidr := netip.MustParsePrefix(e.CIDR).Masked()
			list(tables[i].entries[cidr].route(), nodeName(d, hopOf(&e)))
		}
	}
	return routes, nil
}

// observe returns what the nodes want and the tables that can be read. It fails only when none can.
func (r *Routes) observe(ctx context.Context, notBefore time.Time) (*desired, []*table, error) {
	d, readings, err := r.writer.observe(ctx, notBefore)
	if err != nil {
		return nil, nil, err
	}
	r.writer.learn(d)
	tables, _, unread := readable(readings)
	if len(tables) == 0 {
		return nil, nil, unread
	}
	return d, tables, nil
}

func nodeName(d *desired, instance string) string {
	if node, ok := d.instances[instance]; ok {
		return node.Name
	}
	return ""
}

func available(tables []*table, cidr netip.Prefix, hop string) bool {
	for _, t := range tables {
		if e, ok := t.entries[cidr]; !ok || e.hop != hop || e.Status != alicloud.RouteAvailable {
			return false
		}
	}
	return len(tables) > 0
}

// CreateRoute makes the route in every table and waits a short while for it to be available. An entry of ours that leads
// elsewhere is replaced. While the cloud is at work the error is an API conflict, after which the stock controller tries
// again.
func (r *Routes) CreateRoute(ctx context.Context, _, _ string, route *cloudprovider.Route) error {
	cidr, hop, err := r.parse(route)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(availableWithin)
	var notBefore time.Time
	for attempt := 0; ; attempt++ {
		d, tables, err := r.observe(ctx, notBefore)
		if err != nil {
			return err
		}
		if d, err = r.force(d, route, cidr, hop); err != nil {
			return err
		}
		if available(tables, cidr, hop) {
			return nil
		}
		if err := r.advance(ctx, d, tables, cidr); err != nil {
			return err
		}
		wait := confirmAfter(attempt, r.writer.settleTime())
		if time.Now().Add(wait).After(deadline) {
			return inProgress(route, errors.New("the cloud is still at work on it"))
		}
		if err := sleep.For(ctx, wait); err != nil {
			return err
		}
		notBefore = time.Now()
	}
}

// advance makes the next change towards the wanted route in every table.
func (r *Routes) advance(ctx context.Context, d *desired, tables []*table, cidr netip.Prefix) error {
	var changes []*change
	for _, t := range tables {
		p := diff(d, t, r.config, r.writer.evidence(time.Now()))
		if e, conflict := p.conflicts[cidr]; conflict {
			return fmt.Errorf("route table %s has an entry for %s that leads to %v and that this cluster does not own", t.id, cidr, e.NextHops)
		}
		for i := range p.replace {
			if sameRange(p.replace[i].CIDR, cidr) {
				changes = append(changes, &change{remove: &p.replace[i], proven: true})
			}
		}
		for i := range p.create {
			if sameRange(p.create[i].CIDR, cidr) {
				changes = append(changes, &change{create: &p.create[i]})
			}
		}
	}
	d.name(changes)
	r.writer.apply(ctx, changes)
	for _, c := range changes {
		observeChange(c)
		// A duplicate was made by somebody else since the read: the next one shows whose it is.
		if c.err != nil && !alicloud.IsDuplicate(c.err) && !alicloud.IsAmbiguous(c.err) && !alicloud.IsBusy(c.err) {
			return c.err
		}
	}
	return nil
}

// sameRange compares ranges, not texts: an IPv6 range has many spellings.
func sameRange(text string, cidr netip.Prefix) bool {
	prefix, err := netip.ParsePrefix(text)
	return err == nil && prefix.Masked() == cidr
}

// parse reads a wanted route: its CIDR and the instance of its node.
func (r *Routes) parse(route *cloudprovider.Route) (netip.Prefix, string, error) {
	cidr, err := netip.ParsePrefix(route.DestinationCIDR)
	if err != nil || !r.config.covers(cidr.Masked()) {
		return netip.Prefix{}, "", fmt.Errorf("route destination %q is no range inside the cluster CIDR %v", route.DestinationCIDR, r.config.ClusterCIDRs)
	}
	node := r.writer.node(string(route.TargetNode))
	if node == nil {
		return netip.Prefix{}, "", fmt.Errorf("node %q of route %s does not exist", route.TargetNode, cidr)
	}
	instance, err := r.writer.opts.InstanceID(node)
	if err != nil {
		return netip.Prefix{}, "", fmt.Errorf("route %s: %w", cidr, err)
	}
	return cidr.Masked(), instance, nil
}

// force reduces what is wanted to exactly this route. It refuses one that the nodes do not want: the caller may have read them
// earlier, or does not look for pod CIDRs that overlap.
func (r *Routes) force(d *desired, asked *cloudprovider.Route, cidr netip.Prefix, instance string) (*desired, error) {
	if d.retained.Has(cidr) && cidr.Addr().Is6() {
		return nil, fmt.Errorf("route destination %s: no vSwitch of %s has IPv6", cidr, r.config.VPCID)
	}
	want, ok := d.routes[cidr]
	if !ok || want.instance != instance {
		return nil, fmt.Errorf("route destination %s: not the pod CIDR of node %s, or one that overlaps with that of another node", cidr, asked.TargetNode)
	}
	only := *d
	only.routes = map[netip.Prefix]desiredRoute{cidr: want}
	return &only, nil
}

// DeleteRoute removes the route from every table, if it still leads where it led when it was listed: the stock controller
// deletes and creates at the same time when a CIDR moves.
func (r *Routes) DeleteRoute(ctx context.Context, _ string, route *cloudprovider.Route) error {
	hop, cidr, err := parseRouteName(route)
	if err != nil {
		return err
	}
	d, tables, err := r.observe(ctx, time.Time{})
	if err != nil {
		return err
	}
	var changes []*change
	for _, t := range tables {
		if e, ok := t.entries[cidr]; ok && hop != "" && e.hop == hop {
			changes = append(changes, &change{remove: &e.RouteEntry})
		}
	}
	d.name(changes)
	r.writer.apply(ctx, changes)
	var errs []error
	for _, c := range changes {
		observeChange(c)
		if c.err == nil {
			r.writer.noteRemoval(c)
		}
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

// routeName holds what DeleteRoute needs to know of a listed route: where it led. The node may be gone by then.
func routeName(hop string, cidr netip.Prefix) string { return hop + "/" + cidr.String() }

func parseRouteName(route *cloudprovider.Route) (string, netip.Prefix, error) {
	hop, text, ok := strings.Cut(route.Name, "/")
	cidr, err := netip.ParsePrefix(text)
	if !ok || err != nil {
		return "", netip.Prefix{}, fmt.Errorf("route name %q: expected one of ListRoutes, \"<instance>/<CIDR>\"", route.Name)
	}
	return hop, cidr, nil
}

func inProgress(route *cloudprovider.Route, err error) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "routes"}, route.DestinationCIDR, err)
}
