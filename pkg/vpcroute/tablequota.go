package vpcroute

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// tableQuota remembers which tables the cloud called full, so that the nodes without a route cost neither a call nor an
// event each.
type tableQuota map[string]quotaRefusal

type quotaRefusal struct {
	entries int       // that the table held
	until   time.Time // when the cloud is asked again, for the quota may have been raised
}

// room is how many routes may be created in the table now, at most one call's worth. Without room, the time says when
// there may be some.
func (q tableQuota) room(t *table, now time.Time) (int, time.Time) {
	full, ok := q[t.id]
	if !ok || !now.Before(full.until) {
		delete(q, t.id)
		return alicloud.MaxRouteEntriesPerCall, time.Time{}
	}
	return min(alicloud.MaxRouteEntriesPerCall, max(0, full.entries-t.custom)), full.until
}

// refused notes that the table has no room beyond the entries that it holds.
func (q tableQuota) refused(id string, entries int, now time.Time) {
	q[id] = quotaRefusal{entries: entries, until: now.Add(permanentRetry)}
}
