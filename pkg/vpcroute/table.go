package vpcroute

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// route is a CIDR and the instance that it leads to, in whichever table.
type route struct {
	cidr     netip.Prefix
	instance string
}

// entry is a custom route entry. Its route has no instance where it leads elsewhere, or to more than one next hop.
type entry struct {
	alicloud.RouteEntry
	route
}

// entryOf reports false for an entry without a readable destination.
func entryOf(e alicloud.RouteEntry) (entry, bool) {
	cidr, err := netip.ParsePrefix(e.CIDR)
	at := entry{RouteEntry: e, route: route{cidr: cidr.Masked()}}
	if len(e.NextHops) == 1 && e.NextHops[0].Type == alicloud.NextHopInstance {
		at.instance = e.NextHops[0].ID
	}
	return at, err == nil
}

// table is what is known of one route table: its custom entries inside the cluster CIDR, as read last and changed since
// by our own writes.
type table struct {
	id      string
	entries map[netip.Prefix]entry
	// custom counts all custom entries, which share the table's quota.
	custom int
	// read is when the cloud was asked last; unread is when it accepted the first change since then, zero for none.
	read, unread time.Time
	// stale says that a write had an unknown result, so that the table must be read before it is judged.
	stale bool
	// err is why the table could not be read last. Its entries are then those of the read before.
	err error
}

func newTable(id string, entries []alicloud.RouteEntry, config Config, read time.Time) *table {
	t := &table{id: id, entries: map[netip.Prefix]entry{}, read: read}
	for i := range entries {
		if entries[i].Type != alicloud.RouteTypeCustom {
			continue
		}
		t.custom++
		if e, ok := entryOf(entries[i]); ok && config.covers(e.cidr) {
			t.entries[e.cidr] = e
		}
	}
	return t
}

// created notes an entry that the cloud accepted. It counts as available only once a read shows it so.
func (t *table) created(r route, description string, now time.Time) {
	t.removed(r.cidr, now) // one in its place, if any
	t.custom++
	t.entries[r.cidr], _ = entryOf(alicloud.RouteEntry{
		TableID: t.id, CIDR: r.cidr.String(), Type: alicloud.RouteTypeCustom, Status: alicloud.RoutePending, Description: description,
		NextHops: []alicloud.NextHop{{ID: r.instance, Type: alicloud.NextHopInstance}},
	})
}

// removed notes that the entry is gone, or will be without further help.
func (t *table) removed(cidr netip.Prefix, now time.Time) {
	if _, known := t.entries[cidr]; known {
		delete(t.entries, cidr)
		t.custom--
	}
	if t.unread.IsZero() {
		t.unread = now
	}
}

// markPrefix begins the description of every entry that this program makes. It must not change: entries carry it for years,
// and it is how an entry is recognized whose node went away while this program was down.
const markPrefix = "k8s/pod-cidr/"

// sharedClusterID is the cluster id of every cluster whose own is not known: the official CCM's literal. sharedMark is the description of
// their entries. It does not say whose an entry is, but once its instance is gone the entry is of use to none.
const (
	sharedClusterID = "clusterid"
	sharedMark      = markPrefix + sharedClusterID
)

// mark is the description of this cluster's entries.
func (c Config) mark() string { return markPrefix + c.ClusterID }

// made reports whether this cluster, and no other, has made the entry.
func (c Config) made(e entry) bool { return e.Description == c.mark() && e.Description != sharedMark }

// owner is who made an entry, as its description says.
type owner int

const (
	// nobody says that the entry has no description, as the official CCM's, or a mark that several clusters may write.
	nobody owner = iota
	thisCluster
	somebodyElse
)

func ownerOf(config Config, e entry) owner {
	switch {
	case e.instance == "", e.Description == "" && config.isClusterCIDR(e.cidr):
		// A route for all pods at once is somebody's deliberate choice, also when it leads to a node.
		return somebodyElse
	case e.Description == "", e.Description == sharedMark:
		return nobody
	case e.Description == config.mark():
		return thisCluster
	}
	return somebodyElse
}

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
	*table // whose err is set where it could not be read, so that nothing else is known
	create []route
	// replace are entries in the way of a desired route that are this cluster's, or lead to an instance that is gone.
	replace []entry
	// surplus are entries of this cluster that no node wants. How many of them may go at once is not the table's business.
	surplus []entry
	// states has one element per desired route.
	states map[netip.Prefix]state
	// conflicts are entries of others that stand in the way of a desired route.
	conflicts map[netip.Prefix]entry
	// unowned are entries without owner in the way of a desired route. They may go once their instance is proven gone.
	unowned []entry
}

// count counts the desired routes in one of the states.
func (p *plan) count(any ...state) (n int) {
	for _, s := range p.states {
		if slices.Contains(any, s) {
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
}

// diff compares the nodes with one table. It changes neither.
func diff(d *desired, t *table, config Config, known evidence) *plan {
	p := &plan{table: t, states: make(map[netip.Prefix]state, len(d.routes)), conflicts: map[netip.Prefix]entry{}}
	for cidr, want := range d.routes {
		p.states[cidr] = p.compare(d, t, config, known, route{cidr, want.instance})
	}
	for cidr, e := range t.entries {
		if _, wanted := d.routes[cidr]; !wanted && !d.retained.Has(cidr) {
			p.classify(d, config, known, e)
		}
	}
	slices.SortFunc(p.create, byCIDR)
	slices.SortFunc(p.replace, func(a, b entry) int { return byCIDR(a.route, b.route) })
	slices.SortFunc(p.surplus, func(a, b entry) int { return byCIDR(a.route, b.route) })
	return p
}

func byCIDR(a, b route) int {
	return cmp.Or(a.cidr.Compare(b.cidr), cmp.Compare(a.instance, b.instance))
}

// compare decides about a desired route. An entry in its way that leads to another node of this cluster is wrong by what Kubernetes says,
// whoever made it.
func (p *plan) compare(d *desired, t *table, config Config, known evidence, want route) state {
	e, exists := t.entries[want.cidr]
	owner := ownerOf(config, e)
	switch {
	case !exists:
		p.create = append(p.create, want)
		return stateMissing
	case e.instance == want.instance && e.Status == alicloud.RouteAvailable:
		return stateAvailable
	case e.instance == want.instance, e.Status == alicloud.RouteDeleting:
		return statePending
	case d.instances[e.instance] != nil, owner == thisCluster, owner == nobody && (known.former(e.route) || known.gone(e.instance)):
		// The CIDR moves to another node. The new entry follows when this one is gone.
		if e.Status == alicloud.RouteAvailable {
			p.replace = append(p.replace, e)
		}
		return statePending
	}
	p.conflicts[want.cidr] = e
	if owner == nobody {
		p.unowned = append(p.unowned, e)
	}
	return stateConflict
}

// classify decides about an entry that no node wants.
func (p *plan) classify(d *desired, config Config, known evidence, e entry) {
	node, owner := d.instances[e.instance], ownerOf(config, e)
	switch {
	case e.Status != alicloud.RouteAvailable || owner == somebodyElse:
	case node != nil && len(nodes.PodCIDRs(node)) == 0:
		// The Node of this machine has just been registered again, and may get the same pod CIDR.
	case owner == thisCluster || known.former(e.route):
		p.surplus = append(p.surplus, e)
	case !inTheWay(d, e) && e.Description != sharedMark:
		// An entry without a mark may be a user's.
	case known.gone(e.instance):
		p.replace = append(p.replace, e)
	default:
		p.unowned = append(p.unowned, e)
	}
}

// inTheWay reports whether the entry takes packets from a desired route: its CIDR is inside the route's.
func inTheWay(d *desired, e entry) bool {
	around, ok := d.claims.overlapping(e.cidr)
	_, desired := d.routes[around.cidr]
	return ok && desired && around.cidr.Bits() <= e.cidr.Bits()
}

// change is one entry to create or to remove.
type change struct {
	table string
	route
	// remove is the entry to remove, nil for a creation.
	remove *entry
	// node is the Node whose pod CIDR it is, empty where there is none any more.
	node string
	// proven says that a removal does not count against the cap of removals.
	proven bool
	err    error
}

func (c *change) key() routeKey { return routeKey{c.table, c.route} }

func (c *change) String() string {
	verb := "create"
	if c.remove != nil {
		verb = "delete"
	}
	return fmt.Sprintf("%s route %s to %s in %s", verb, c.cidr, c.instance, c.table)
}
