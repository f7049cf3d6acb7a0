package vpcroute

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
func (f tableQuota) room(t *table, now time.Time) (int, time.Time) {
	full, ok := f[t.id]
	if !ok || !now.Before(full.until) {
		delete(f, t.id)
		return alicloud.MaxRouteEntriesPerCall, time.Time{}
	}
	return min(alicloud.MaxRouteEntriesPerCall, max(0, full.entries-t.custom)), full.until
}

// quotaReached notes that the table has no room for the node's route and tells it, once for all nodes.
func (p *pass) quotaReached(id string, node *corev1.Node, err error, now time.Time) {
	entries := p.c.writer.entriesOf(id)
	p.quota[id] = quotaRefusal{entries: entries, until: now.Add(permanentRetry)}
	if p.c.events.first(quotaKey(id), reasonQuota) {
		p.c.events.recorder.Eventf(node, corev1.EventTypeWarning, reasonQuota, "Route table %s is full with %d custom entries, so this node has no "+
			"route, nor has any other that waits for one; they are not told each. Ask for a higher quota (vpc_quota_route_entrys_num) or remove "+
			"entries: %v", id, entries, err)
	}
}

// quotaKey stands for the UID of a node in what is told of a table.
func quotaKey(id string) types.UID { return types.UID("full/" + id) }
