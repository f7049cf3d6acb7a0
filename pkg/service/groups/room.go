package groups

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Divide leaves a Service of a group the room on a load balancer that the others there leave it, and each of its ports a fixed share: what
// one Service has is not to depend on which others come and go, nor on how much a load balancer has been seen to take.
func (g *Groups[LB]) Divide(room *backend.Room, group mark.Group, svc *corev1.Service, id string) {
	if group.IsZero() {
		return
	}
	limit := g.Config.Quotas.Of(g.Product.BackendQuota, id)
	most, _ := g.Cloud.Room("") // any load balancer
	total, known := g.Servers(group, id)
	if limit.Exceeded(total) {
		room.Most = 0 // the quota is larger
	}
	room.Divide(g.ServersOfOthers(id, svc), max(g.Config.Quotas.Limit(g.Product.BackendQuota).Value/most, 1), known)
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
