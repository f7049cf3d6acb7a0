package vpcroute

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// state is how far a wanted route is in one table.
type state int

const (
	stateMissing   state = iota // to be created
	statePending                // the cloud is at work, or the last write is not confirmed yet
	stateAvailable              // works
	stateConflict               // somebody else's entry has the CIDR
)

// plan is the difference between the nodes and one table.
type plan struct {
	table  string
	create []alicloud.NewRoute
	remove []alicloud.RouteEntry
	// states has one element per wanted route.
	states map[netip.Prefix]state
	// conflicts are the foreign entries that stand in the way of a wanted route.
	conflicts map[netip.Prefix]entry
	// unowned are entries that no node wants and whose instance was never a node. They are ours only if the instance
	// is gone.
	unowned []entry
}

// settling reports whether the cloud is still at work on a wanted route.
func (p *plan) settling() bool {
	for _, s := range p.states {
		if s == statePending {
			return true
		}
	}
	return false
}

// diff compares the nodes with one table. It changes neither.
func diff(d *desired, t *table, config Config) *plan {
	p := &plan{table: t.id, states: make(map[netip.Prefix]state, len(d.routes)), conflicts: map[netip.Prefix]entry{}}
	for cidr, w := range d.routes {
		p.states[cidr] = p.compare(d, t, config, cidr, w)
	}
	for cidr := range t.entries {
		if _, wanted := d.routes[cidr]; !wanted && !d.retained.Has(cidr) {
			p.classify(d, config, t.entries[cidr])
		}
	}
	slices.SortFunc(p.create, func(a, b alicloud.NewRoute) int { return cmp.Compare(a.CIDR, b.CIDR) })
	slices.SortFunc(p.remove, func(a, b alicloud.RouteEntry) int { return cmp.Compare(a.CIDR, b.CIDR) })
	return p
}

// compare decides about a wanted route.
func (p *plan) compare(d *desired, t *table, config Config, cidr netip.Prefix, w desiredRoute) state {
	e, exists := t.entries[cidr]
	switch {
	case !exists:
		p.create = append(p.create, alicloud.NewRoute{
			TableID: t.id, CIDR: cidr.String(), InstanceID: w.instance, Description: config.mark(),
		})
		return stateMissing
	case e.hop == w.instance && e.Status == alicloud.RouteAvailable:
		return stateAvailable
	case e.hop == w.instance:
		return statePending
	case !ours(d, config, e):
		p.conflicts[cidr] = e
		return stateConflict
	case e.Status == alicloud.RouteAvailable:
		// The CIDR moves to another node. The new entry follows when this one is gone.
		p.remove = append(p.remove, e.RouteEntry)
		return statePending
	default:
		return statePending
	}
}

// classify decides about an entry that no node wants.
func (p *plan) classify(d *desired, config Config, e entry) {
	switch {
	case e.Status != alicloud.RouteAvailable || e.hop == "":
	case config.isClusterCIDR(e.cidr) && e.Description != config.mark():
		// A route for all pods at once is somebody's deliberate choice, also when it leads to a node.
	case ours(d, config, e):
		p.remove = append(p.remove, e.RouteEntry)
	case e.Description == "":
		p.unowned = append(p.unowned, e)
	}
}

// ours reports whether the entry may be removed: it leads to an instance that is or was a node of this cluster. Without
// any node nothing proves that a node is gone: the cache may just be empty, or an API server has come back without its data
// while all pods still run.
func ours(d *desired, config Config, e entry) bool {
	if e.hop == "" || d.instances.Len() == 0 {
		return false
	}
	return d.instances.Has(e.hop) || d.former.Has(e.hop) || e.Description == config.mark()
}
