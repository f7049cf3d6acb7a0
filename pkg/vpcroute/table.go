package vpcroute

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

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
	// err is why the table could not be read last, and retry when it is read again. Its entries are then those of the read before.
	err      error
	attempts int // in vain, in a row
	retry    time.Time
	// gone says that the cloud has no such table.
	gone bool
}

// entry is a custom route entry.
type entry struct {
	alicloud.RouteEntry
	cidr netip.Prefix
	// hop is the instance that the entry leads to, "" for every other or more than one next hop.
	hop string
}

// route is the entry's CIDR and the instance that it leads to.
func (e entry) route() route { return route{cidr: e.cidr, instance: e.hop} }

func newTable(id string, entries []alicloud.RouteEntry, config Config, read time.Time) *table {
	t := &table{id: id, entries: map[netip.Prefix]entry{}, read: read}
	for i := range entries {
		if entries[i].Type != alicloud.RouteTypeCustom {
			continue
		}
		t.custom++
		cidr, err := netip.ParsePrefix(entries[i].CIDR)
		if err != nil || !config.covers(cidr.Masked()) {
			continue
		}
		t.entries[cidr.Masked()] = entry{RouteEntry: entries[i], cidr: cidr.Masked(), hop: hopOf(&entries[i])}
	}
	return t
}

func hopOf(e *alicloud.RouteEntry) string {
	if len(e.NextHops) != 1 || e.NextHops[0].Type != alicloud.NextHopInstance {
		return ""
	}
	return e.NextHops[0].ID
}

// created notes an entry that the cloud accepted. It counts as available only once a read shows it so.
func (t *table) created(route alicloud.NewRoute, now time.Time) {
	cidr := netip.MustParsePrefix(route.CIDR)
	if _, known := t.entries[cidr]; !known {
		t.custom++
	}
	t.changed(now)
	t.entries[cidr] = entry{cidr: cidr, hop: route.InstanceID, RouteEntry: alicloud.RouteEntry{
		TableID: t.id, CIDR: route.CIDR, Type: alicloud.RouteTypeCustom, Status: alicloud.RoutePending, Description: route.Description,
		NextHops: []alicloud.NextHop{{ID: route.InstanceID, Type: alicloud.NextHopInstance}},
	}}
}

func (t *table) changed(now time.Time) {
	if t.unread.IsZero() {
		t.unread = now
	}
}

// removed notes that the entry is gone, or will be without further help.
func (t *table) removed(e alicloud.RouteEntry, now time.Time) {
	cidr, err := netip.ParsePrefix(e.CIDR)
	if err != nil {
		return
	}
	if _, known := t.entries[cidr.Masked()]; known {
		delete(t.entries, cidr.Masked())
		t.custom--
	}
	t.changed(now)
}

// settling reports whether the cloud is at work on an entry.
func (t *table) settling() bool {
	for _, e := range t.entries {
		if e.Status != alicloud.RouteAvailable {
			return true
		}
	}
	return false
}

// confirmDue reports whether the table has had unconfirmed entries for so long that they are worth a read.
func (t *table) confirmDue(now time.Time) bool {
	return !t.unread.IsZero() && now.Sub(t.unread) >= max(confirmEvery, confirmPage*time.Duration(1+t.custom/pageEntries))
}

// markPrefix begins the description of every entry that this program makes. It must not change: entries carry it for years,
// and it is how an entry is recognized whose node went away while this program was down.
const markPrefix = "k8s/pod-cidr"

// sharedClusterID is the cluster id of every cluster whose own is not known: the official CCM's literal. It proves nothing, for
// other clusters in the VPC may have it too.
const sharedClusterID = "clusterid"

// owner is who made an entry, as its description says.
type owner int

const (
	// nobody says that the entry has no description, as the official CCM's, or a mark that several clusters may write.
	nobody owner = iota
	thisCluster
	somebodyElse
)

// mark is the description of this cluster's entries.
func (c Config) mark() string {
	if c.ClusterID == "" {
		return markPrefix
	}
	return markPrefix + "/" + c.ClusterID
}

// ownerOf returns who made the entry. One that leads to no single instance is somebody else's.
func ownerOf(config Config, e entry) owner {
	switch {
	case e.hop == "":
		return somebodyElse
	case e.Description == "" && config.isClusterCIDR(e.cidr):
		// A route for all pods at once is somebody's deliberate choice, also when it leads to a node.
		return somebodyElse
	case e.Description == "", sharedMark(e.Description):
		return nobody
	case e.Description == config.mark():
		return thisCluster
	default:
		return somebodyElse
	}
}

// sharedMark reports whether this program made the entry for a cluster whose own id was not known. The mark does not say which cluster
// that was, but once its instance is gone the entry is of use to none.
func sharedMark(description string) bool {
	id, marked := strings.CutPrefix(description, markPrefix)
	id = strings.TrimPrefix(id, "/")
	return marked && (id == "" || id == sharedClusterID)
}

// replaceable reports whether an entry in the way of a desired route may be removed. One that leads to another node of this cluster is
// wrong by what Kubernetes says, whoever made it.
func replaceable(d *desired, config Config, known evidence, e entry) bool {
	if d.instances[e.hop] != nil {
		return true
	}
	switch ownerOf(config, e) {
	case thisCluster:
		return true
	case nobody:
		return known.former(e.route()) || known.gone(e.hop)
	default:
		return false
	}
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
	table string
	// unread says that the table could not be read, so that nothing is known of it.
	unread bool
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
	// occupant returns the entry of another type than Custom that has a destination, nil for none.
	occupant func(routeKey) *entry
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
		p.states[cidr] = p.compare(d, t, config, known, cidr, want)
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
func (p *plan) compare(d *desired, t *table, config Config, known evidence, cidr netip.Prefix, want desiredRoute) state {
	e, exists := t.entries[cidr]
	if !exists {
		if other := known.occupant(routeKey{t.id, cidr}); other != nil {
			p.conflicts[cidr] = *other
			return stateConflict
		}
	}
	switch {
	case !exists:
		p.create = append(p.create, alicloud.NewRoute{TableID: t.id, CIDR: cidr.String(), InstanceID: want.instance, Description: config.mark()})
		return stateMissing
	case e.hop == want.instance && e.Status == alicloud.RouteAvailable:
		return stateAvailable
	case e.hop == want.instance, e.Status == alicloud.RouteDeleting:
		return statePending
	case !replaceable(d, config, known, e):
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
	case !inTheWay(d, e) && !sharedMark(e.Description):
		// An entry without a mark may be a user's.
	case known.gone(e.hop):
		p.replace = append(p.replace, e.RouteEntry)
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

func waitsForCIDR(d *desired, instance string) bool {
	node, ok := d.instances[instance]
	return ok && len(nodes.PodCIDRs(node)) == 0
}
