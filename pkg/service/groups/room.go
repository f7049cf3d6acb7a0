package groups

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Bound leaves a Service no more room on a load balancer than its share. It gives nothing up because of a quota that is only assumed,
// unless another Service waits for its share: what the cloud refused once may be possible now, and a load balancer that has more than was
// read or published shows that the quota is larger. While this process does not know yet what each Service has there, it may have more.
func (g *Groups[LB]) Bound(room *backend.Room, group mark.Group, svc *corev1.Service, id string, limit quota.Limit) {
	if group.IsZero() || limit.Value <= 0 {
		return
	}
	if share := g.Share(group, svc, id, limit.Value); share < limit.Value {
		room.Bound(share)
	}
	if room.Most == 0 || !limit.Assumed || room.IsLeaving() || g.IsNeeded(id, svc.UID, room.Most) {
		return
	}
	if total, all := g.Servers(group, id); limit.Source == quota.Refusal || !all || total > limit.Value {
		room.Most = max(room.Most, room.Largest())
	}
}

// Share is how many backend servers each port of a Service may have on a load balancer that it shares and that may have limit of them: all
// of them where it shares none. Services that had no pass yet count, too: of many that come at once, the first ones would fill the load
// balancer, and the others would wait until those have given backend servers up again, all in their turns.
func (g *Groups[LB]) Share(group mark.Group, svc *corev1.Service, id string, limit int) int {
	if group.IsZero() {
		return limit
	}
	r, err := g.buildMembership(group, svc, true)
	if err != nil {
		return limit
	}
	place := sharing.Decide(r.services, r.balancers, r.most, svc.UID)
	if place.Services < 2 { //nolint:mnd // it is alone
		return limit
	}
	return max(limit/g.parts(&place, id), 1)
}

// parts is into how many parts the backend servers of a load balancer are divided, one for each listener of those that are on it and that
// are coming. It counts in powers of two, so that not each Service that comes or goes changes the backend servers of all others.
func (g *Groups[LB]) parts(place *sharing.Place, id string) int {
	parts := 1
	for parts < place.Listeners {
		parts *= 2
	}
	most, _ := g.Cloud.Room(id)
	return min(parts, max(most, place.Listeners))
}

// roomText says how many listeners a load balancer has room for, and because of which quota.
func (g *Groups[LB]) roomText(id string) string {
	most, _ := g.Cloud.Room(id)
	if most >= g.Config.Quotas.Of(g.Product.ListenerQuota, id).Value {
		return fmt.Sprintf("%s (quota %s)", problem.Count(most, "listener"), g.Product.ListenerQuota)
	}
	return fmt.Sprintf("%s with %d backend servers each (quota %s)", problem.Count(most, "listener"), LeastPerPort, g.Product.BackendQuota)
}

// LeastPerPort is how many backend servers each port of a Service has room for on a load balancer that it shares.
const LeastPerPort = 4

// RoomFor is how many listeners a load balancer has room for: as many as the quotas leave, with some backend servers for each.
func RoomFor(listeners, backends int) int { return max(min(listeners, backends/LeastPerPort), 1) }
