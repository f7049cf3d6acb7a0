package groups

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Share is how many backend servers each port of a Service may have on a load balancer that it shares, whose quota of them is given; most is how many it
// may have without the others, 0 for any number. That remains where it shares none, or the quota is not known, which is 0. The number of listeners counts in
// powers of two, so that not each Service that comes or goes changes the backend servers of all others. Services that had no pass yet count, too: of many that
// come at once, the first ones would fill the load balancer, and the others would wait until those have given backend servers up again, all in their turns.
func (g *Groups[LB]) Share(group mark.Group, svc *corev1.Service, id string, most, quota int) int {
	if group.IsZero() || quota <= 0 {
		return most
	}
	place, _, _, err := g.decideWith(group, svc, true)
	if err != nil || place.Services < 2 { //nolint:mnd // it is alone
		return most
	}
	parts := 1
	for parts < place.Listeners {
		parts *= 2
	}
	share := max(quota/min(parts, max(g.Cloud.Room(id), place.Listeners)), 1)
	if most == 0 {
		return share
	}
	return min(most, share)
}

// LeastPerPort is how many backend servers each port of a Service has room for on a load balancer that it shares.
const LeastPerPort = 4

// RoomFor is how many listeners a load balancer has room for: as many as the quotas leave, with some backend servers for each.
func RoomFor(listeners, backends int) int { return max(min(listeners, backends/LeastPerPort), 1) }
