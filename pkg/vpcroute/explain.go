package vpcroute

import (
	"context"
	"net/netip"

	"k8s.io/klog/v2"
)

// explained returns the context of a call whose line in the log says which routes it is about, whose they are, and why they change. Without
// the Node, nobody could tell later why pods lost their route.
func explained(ctx context.Context, batch []*change) context.Context {
	routes := make([]string, 0, len(batch))
	why := "nodes have these pod CIDRs and no route"
	for _, c := range batch {
		var route string
		if c.create != nil {
			route = c.create.CIDR + " to " + c.create.InstanceID
		} else {
			route = c.remove.CIDR + " to " + hopOf(c.remove)
			why = "no node has these pod CIDRs on these instances"
		}
		if c.node != "" {
			route += " of node " + c.node
		}
		routes = append(routes, route)
	}
	return klog.NewContext(ctx, klog.FromContext(ctx).WithValues("why", why, "routes", routes))
}

// name notes whose pod CIDRs the changes are about.
func (d *desired) name(changes []*change) {
	for _, c := range changes {
		var text string
		if c.create != nil {
			text = c.create.CIDR
		} else {
			text = c.remove.CIDR
		}
		if cidr, err := netip.ParsePrefix(text); err == nil && d.routes[cidr].node != nil {
			c.node = d.routes[cidr].node.Name
		}
	}
}
