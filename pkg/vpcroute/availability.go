package vpcroute

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// availability is whether a node's pods can be reached. The worst of several wins.
type availability int

const (
	up availability = iota
	// unknown leaves a condition that says the one or the other as it is.
	unknown
	down
)

// view is what a pass knows about the tables.
type view struct {
	// plans are of the tables that were read, failed the tables that could not be.
	plans  []*plan
	failed []string
	// tableOf returns the table that the node's vSwitch uses, "" when that is not known.
	tableOf func(*corev1.Node) string
	// check returns the state of an instance's source/destination check.
	check func(instance string) checkState
}

// wantedConditions says of every node with a pod CIDR whether its network is available: its routes, of both IP versions, work in
// the table that its vSwitch uses, and for the first time only once they work in all others too; and its source/destination check
// is off. Nodes about which nothing is known are left out.
func wantedConditions(d *desired, v view) map[string]conditionFor {
	worst := map[*corev1.Node]availability{}
	note := func(node *corev1.Node, a availability) {
		worst[node] = max(worst[node], a)
	}
	for cidr, want := range d.routes {
		note(want.node, v.route(want.node, cidr))
		note(want.node, v.check(want.instance).availability())
	}
	for _, problem := range d.problems {
		_, routed := worst[problem.node]
		switch {
		case problem.keepCondition:
			note(problem.node, unknown)
		case problem.reason != reasonIPv6 || !routed: // where the VPC has no IPv6, an IPv4 route is enough
			note(problem.node, down)
		}
	}
	wanted := map[string]conditionFor{}
	for node, a := range worst {
		if a != unknown {
			wanted[node.Name] = conditionFor{uid: node.UID, available: a == up}
		}
	}
	for _, node := range d.unmanaged {
		wanted[node.Name] = conditionFor{uid: node.UID, available: true, unmanaged: true}
	}
	for _, node := range d.joining {
		if _, known := wanted[node.Name]; !known {
			wanted[node.Name] = conditionFor{uid: node.UID}
		}
	}
	return wanted
}

// route is the availability of one route of the node in all tables.
func (v view) route(node *corev1.Node, cidr netip.Prefix) availability {
	if len(v.plans) == 0 {
		return unknown
	}
	own := v.tableOf(node)
	managed := v.manages(own)
	result := up
	for _, id := range v.failed {
		if id == own || !managed {
			result = unknown
		}
	}
	for _, plan := range v.plans {
		switch {
		case plan.states[cidr] == stateAvailable:
		case plan.table == own || !managed:
			return down
		default:
			result = unknown
		}
	}
	return result
}

func (v view) manages(table string) bool {
	for _, plan := range v.plans {
		if plan.table == table {
			return true
		}
	}
	return slices.Contains(v.failed, table)
}
