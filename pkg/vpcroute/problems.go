package vpcroute

import (
	"fmt"
	"slices"
	"strings"
)

// problemsOf lists what keeps nodes from having their routes in tables that were read: problems of the nodes themselves, entries
// of others in the way, and ranges that the cloud would refuse.
func problemsOf(d *desired, plans []*plan, known subnets) []problem {
	all := slices.Clone(d.problems)
	for _, plan := range plans {
		for cidr, e := range plan.conflicts {
			all = append(all, problem{node: d.routes[cidr].node, reason: reasonConflict, message: fmt.Sprintf(
				"Route table %s has an entry of type %s for the pod CIDR %s that leads to %v and that this cluster does not own; it stays, and the "+
					"node's pods cannot be reached. Remove the entry, or give the node another pod CIDR", plan.table, e.Type, cidr, e.NextHops)})
		}
	}
	for cidr, want := range d.routes {
		if obstacle := known.obstacle(cidr); obstacle != "" {
			all = append(all, problem{node: want.node, reason: reasonInvalidCIDR, message: fmt.Sprintf(
				"The pod CIDR %s gets no route: it overlaps with %s. Choose a --cluster-cidr that is free in the VPC", cidr, obstacle)})
		}
	}
	slices.SortStableFunc(all, func(a, b problem) int { return strings.Compare(a.node.Name+a.message, b.node.Name+b.message) })
	return all
}
