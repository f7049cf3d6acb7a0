package service

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
)

// Orphans returns what the cluster's marks are on in the cloud and none of the Services owns, of every product, and why something of it
// could not be read: then there may be more. It reads only. The cluster IDs of the result are all that it looked for.
//
// What one product learns of earlier IDs of the cluster holds for the others, so that everything is read again with an ID that is new.
func (r *Reconciler) Orphans(ctx context.Context, query driver.OrphanQuery) (found driver.Census, unread []error) {
	known := sets.New(query.ClusterIDs...).Insert(r.opts.Config.ClusterID)
	for {
		query.ClusterIDs = sets.List(known)
		found, unread = driver.Census{Orphans: []driver.Orphan{}, ClusterIDs: query.ClusterIDs}, nil
		for _, engine := range r.opts.Engines {
			part, err := engine.Orphans(ctx, query)
			found.Orphans = append(found.Orphans, part.Orphans...)
			known.Insert(part.ClusterIDs...)
			if err != nil {
				unread = append(unread, failure.Leaves(err)...)
			}
		}
		if known.Len() == len(query.ClusterIDs) {
			break
		}
	}
	slices.SortFunc(found.Orphans, func(a, b driver.Orphan) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.In, b.In), cmp.Compare(a.ID, b.ID))
	})
	return found, unread
}
