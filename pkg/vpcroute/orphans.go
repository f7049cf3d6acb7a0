package vpcroute

import (
	"context"
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Orphan is an entry that this cluster has made and no node wants.
type Orphan struct {
	alicloud.RouteEntry
	// Instance is the one that it leads to, empty for none or several.
	Instance string
	Reason   string
}

// Orphans returns the entries with this cluster's mark in the managed tables that no node wants. Those inside of the cluster CIDR go by
// themselves unless something keeps the controller from removing them; those outside, left behind by another --cluster-cidr, never do. The
// node informer must have synced. What is returned beside an error is not all.
func (w *Writer) Orphans(ctx context.Context) (orphans []Orphan, err error) {
	o, err := w.takeAndObserve(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	defer w.release()
	config := w.opts.Config
	for _, id := range o.IDs {
		entries, readErr := w.opts.API.DescribeRouteEntries(ctx, id, true)
		if readErr != nil {
			return orphans, fmt.Errorf("read route table %s: %w", id, readErr)
		}
		for i := range entries {
			e, ok := entryOf(entries[i])
			switch _, wanted := o.routes[e.cidr]; {
			case !ok || !config.made(e):
			case !config.covers(e.cidr):
				orphans = append(orphans, Orphan{e.RouteEntry, e.instance, fmt.Sprintf("it is outside of --cluster-cidr %v", config.ClusterCIDRs)})
			case !wanted && !o.retained.Has(e.cidr):
				orphans = append(orphans, Orphan{e.RouteEntry, e.instance, "no Node has this pod CIDR"})
			}
		}
	}
	return orphans, nil
}
