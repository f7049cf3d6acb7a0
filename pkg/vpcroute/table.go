package vpcroute

import (
	"maps"
	"net/netip"
	"time"

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
	// unconfirmed counts the changes since the last read.
	unconfirmed int
	// stale says that a write had an unknown result, so that the table must be read before it is judged.
	stale bool
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
	t.unconfirmed++
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

// clone returns a copy that later writes do not change.
func (t *table) clone() *table {
	copied := *t
	copied.entries = maps.Clone(t.entries)
	return &copied
}
