package vpcroute

import (
	"context"
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// occupied are destinations that an entry of another type than Custom has: one that the cloud has made itself, or has learned from a CEN
// or a border router. The lists of a table leave them out, because there may be many of them. They are looked up when a wanted
// destination turns out to be taken, and count until a period has passed.
type occupied map[routeKey]occupant

type occupant struct {
	entry
	read time.Time
}

// note takes in what a read of the table has shown.
func (o occupied) note(table string, entries []alicloud.RouteEntry, now time.Time) {
	for i := range entries {
		cidr, err := netip.ParsePrefix(entries[i].CIDR)
		if err != nil || entries[i].Type == alicloud.RouteTypeCustom {
			continue
		}
		o[routeKey{table, cidr.Masked()}] = occupant{entry{RouteEntry: entries[i], cidr: cidr.Masked()}, now}
	}
}

// at returns the entry that has the destination.
func (o occupied) at(key routeKey, period time.Duration, now time.Time) (entry, bool) {
	found, ok := o[key]
	if ok && now.Sub(found.read) >= period {
		delete(o, key) // the next attempt shows whether it is still there
		return entry{}, false
	}
	return found.entry, ok
}

// lookUp finds out which entries have the destinations that the cloud calls taken.
func (w *Writer) lookUp(ctx context.Context, table string, cidrs []string) {
	entries, err := w.opts.API.DescribeRouteEntriesOf(ctx, table, cidrs)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot determine which entries have the pod CIDRs of nodes", "table", table, "cidrs", len(cidrs))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.occupied.note(table, entries, time.Now())
}
