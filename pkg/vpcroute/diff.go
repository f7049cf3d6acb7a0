package vpcroute

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// state is how far a desired route is in one table.
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
	// replace are entries in the way of a desired route that are this cluster's, or lead to an instance that is gone.
	replace []alicloud.RouteEntry
	// surplus are entries of this cluster that no node wants. How many of them may go at once is not the table's business.
	surplus []entry
	// states has one element per desired route.
	states map[netip.Prefix]state
	// conflicts are entries of others that stand in the way of a desired route.
	conflicts map[netip.Prefix]entry
	// unowned are entries without owner in the way of a desired route. They may go once their instance is proven gone.
	unowned []entry
}

// settling reports whether the cloud is still at work on a desired route.
func (p *plan) settling() bool {
	for _, s := range p.states {
		if s == statePending {
			return true
		}
	}
	return false
}

// missing counts the desired routes that do not work in the table.
func (p *plan) missing() int {
	n := 0
	for _, s := range p.states {
		if s != stateAvailable {
			n++
		}
	}
	return n
}

// evidence is what this process has seen beside the table itself.
type evidence struct {
	// former reports whether the route belonged to a node of this cluster since this process started.
	former func(route) bool
	// gone reports whether the cloud has proven that it no longer has the instance.
	gone func(instance string) bool
	// stands reports whether a table had an entry for the route when it was last read.
	stands func(route) bool
	// occupied returns the entry of another type than Custom that has a destination, see [occupied].
	occupied func(routeKey) (entry, bool)
}

// route is a CIDR and the instance that it leads to, in whichever table.
type route struct {
	cidr     netip.Prefix
	instance string
}

// diff compares the nodes with one table. It changes neither.
func diff(d *desired, t *table, config Config, known evidence) *plan {
	p := &plan{table: t.id, states: make(map[netip.Prefix]state, len(d.routes)), conflicts: map[netip.Prefix]entry{}}
	for cidr, want := range d.routes {
		p.states[cidr] = p.compare(t, config, known, cidr, want)
	}
	for cidr := range t.entries {
		if _, wanted := d.routes[cidr]; !wanted && !d.retained.Has(cidr) {
			p.classify(d, config, known, t.entries[cidr])
		}
	}
	slices.SortFunc(p.create, func(a, b alicloud.NewRoute) int { return cmp.Compare(a.CIDR, b.CIDR) })
	slices.SortFunc(p.replace, func(a, b alicloud.RouteEntry) int { return cmp.Compare(a.CIDR, b.CIDR) })
	slices.SortFunc(p.surplus, func(a, b entry) int { return cmp.Compare(a.CIDR, b.CIDR) })
	return p
}

// compare decides about a desired route.
func (p *plan) compare(t *table, config Config, known evidence, cidr netip.Prefix, want desiredRoute) state {
	e, exists := t.entries[cidr]
	if !exists {
		if other, taken := known.occupied(routeKey{t.id, cidr}); taken {
			p.conflicts[cidr] = other
			return stateConflict
		}
	}
	switch {
	case !exists:
		p.create = append(p.create, alicloud.NewRoute{
			TableID: t.id, CIDR: cidr.String(), InstanceID: want.instance, Description: config.mark(),
		})
		return stateMissing
	case e.hop == want.instance && e.Status == alicloud.RouteAvailable:
		return stateAvailable
	case e.hop == want.instance, e.Status == alicloud.RouteDeleting:
		return statePending
	case !replaceable(config, known, e):
		p.conflicts[cidr] = e
		if ownerOf(config, e) == nobody {
			p.unowned = append(p.unowned, e)
		}
		return stateConflict
	case e.Status == alicloud.RouteAvailable:
		// The CIDR moves to another node. The new entry follows when this one is gone.
		p.replace = append(p.replace, e.RouteEntry)
		return statePending
	default:
		return statePending
	}
}

// classify decides about an entry that no node wants.
func (p *plan) classify(d *desired, config Config, known evidence, e entry) {
	switch owner := ownerOf(config, e); {
	case e.Status != alicloud.RouteAvailable || owner == somebodyElse:
	case waitsForCIDR(d, e.hop):
		// The Node of this machine has just been registered again, and may get the same pod CIDR.
	case owner == thisCluster || known.former(e.route()):
		p.surplus = append(p.surplus, e)
	case !inTheWay(d, e) && !sharedMark(e):
		// An entry without a mark may be a user's.
	case known.gone(e.hop):
		p.replace = append(p.replace, e.RouteEntry)
	default:
		p.unowned = append(p.unowned, e)
	}
}

// inTheWay reports whether the entry takes packets from a desired route: its CIDR is inside the route's.
func inTheWay(d *desired, e entry) bool {
	claim, _, ok := d.claims.around(e.cidr)
	_, desired := d.routes[claim]
	return ok && desired
}

func waitsForCIDR(d *desired, instance string) bool {
	node, ok := d.instances[instance]
	return ok && len(nodes.PodCIDRs(node)) == 0
}
