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
	for _, id := range o.IDs {
		entries, readErr := w.opts.API.DescribeRouteEntries(ctx, id, true)
		if readErr != nil {
			return orphans, fmt.Errorf("read route table %s: %w", id, readErr)
		}
		for i := range entries {
			if reason := w.opts.Config.orphaned(o.desired, &entries[i]); reason != "" {
				orphans = append(orphans, Orphan{entries[i], hopOf(&entries[i]), reason})
			}
		}
	}
	return orphans, nil
}

// orphaned says why an entry that this cluster has made is of no use, "" for one that is not, or that others may have made.
func (c Config) orphaned(d *desired, e *alicloud.RouteEntry) string {
	cidr, ours := c.made(e)
	switch _, wanted := d.routes[cidr]; {
	case !ours:
		return ""
	case !c.covers(cidr):
		return fmt.Sprintf("it is outside of --cluster-cidr %v", c.ClusterCIDRs)
	case !wanted && !d.retained.Has(cidr):
		return "no Node has this pod CIDR"
	}
	return ""
}
