package vpcroute

import (
	"context"
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// held are destinations that an entry of another type than Custom has: one that the cloud has made itself, or has learned from a CEN
// or a border router. The lists of a table leave them out, because there may be many of them. They are looked up when a wanted
// destination turns out to be taken, and count until a period has passed.
type held map[routeKey]heldEntry

type heldEntry struct {
	entry
	read time.Time
}

// note takes in what a look-up of the table has shown.
func (h held) note(table string, entries []alicloud.RouteEntry, now time.Time) {
	for i := range entries {
		cidr, err := netip.ParsePrefix(entries[i].CIDR)
		if err != nil || entries[i].Type == alicloud.RouteTypeCustom {
			continue
		}
		h[routeKey{table, cidr.Masked()}] = heldEntry{entry{RouteEntry: entries[i], cidr: cidr.Masked()}, now}
	}
}

// at returns the entry that has the destination.
func (h held) at(key routeKey, period time.Duration, now time.Time) (entry, bool) {
	found, ok := h[key]
	if ok && now.Sub(found.read) >= period {
		delete(h, key) // the next attempt shows whether it is still there
		return entry{}, false
	}
	return found.entry, ok
}

// lookUp finds out which entries have the destinations that the cloud calls taken.
func (w *Writer) lookUp(ctx context.Context, table string, cidrs []string) {
	entries, err := w.opts.API.DescribeRouteEntriesOf(ctx, table, cidrs)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot find out which entries have the pod CIDRs of nodes", "table", table, "cidrs", len(cidrs))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held.note(table, entries, time.Now())
}
