package vpcroute

import (
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Quota is how many custom entries a route table may hold, as far as that is known.
type Quota struct {
	Value int
	// Origin says where the value comes from, and Advice how to make the value known to the manager, empty where it is known.
	Origin, Advice string
	// Assumed says that nobody has configured it: a table that holds more shows that the quota is larger.
	Assumed bool
}

// exceeded reports whether a table holds more than the value that is assumed: the quota is larger, and how large is not known.
func (q Quota) exceeded(holds int) bool { return q.Assumed && holds > q.Value }

// nearlyFull reports whether a table that holds so many entries needs 80 % of the quota or more.
func (q Quota) nearlyFull(holds, needs int) bool {
	return !q.exceeded(holds) && needs*100 >= q.Value*80
}

// String says what the quota is, and where that is known from.
func (q Quota) String() string {
	return fmt.Sprintf("the quota %s is %d (value: %s)", alicloud.QuotaRouteEntries, q.Value, q.Origin)
}

// otherwise says what to do if the quota is larger, empty for nothing.
func (q Quota) otherwise() string {
	if q.Advice == "" {
		return ""
	}
	return "; if the account has more, " + q.Advice
}

// tableQuota remembers which tables the cloud called full, so that the nodes without a route cost neither a call nor an
// event each.
type tableQuota map[string]quotaRefusal

type quotaRefusal struct {
	entries int       // that the table held
	until   time.Time // when the cloud is asked again, for the quota may have been raised; what the table held stays the limit until it holds more
}

// room is how many routes may be created in the table now, at most one call's worth. Without room, the time says when
// there may be some.
func (q tableQuota) room(t *table, now time.Time) (int, time.Time) {
	full, ok := q[t.id]
	if !ok || !now.Before(full.until) {
		return alicloud.MaxRouteEntriesPerCall, time.Time{}
	}
	return min(alicloud.MaxRouteEntriesPerCall, max(0, full.entries-t.custom)), full.until
}

// limit is how many entries the table may hold: the quota, or, where the table shows that it is larger, what the table held when the cloud refused more. It reports whether that
// is known.
func (q tableQuota) limit(t *table, quota Quota) (int, bool) {
	if !quota.exceeded(t.custom) {
		return quota.Value, true
	}
	full, ok := q[t.id]
	return full.entries, ok && t.custom <= full.entries
}

// refused notes that the table has no room beyond the entries that it holds.
func (q tableQuota) refused(id string, entries int, now time.Time) {
	q[id] = quotaRefusal{entries: entries, until: now.Add(permanentRetry)}
}
