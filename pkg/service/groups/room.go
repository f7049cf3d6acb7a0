package groups

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Share is how many backend servers each port of a Service may have on a load balancer that it shares, whose quota of them is given; most is how many it
// may have without the others, 0 for any number. That remains where it shares none, or the quota is not known, which is 0. Services that
// had no pass yet count, too: of many that come at once, the first ones would fill the load balancer, and the others would wait until those have given backend
// servers up again, all in their turns.
func (g *Groups[LB]) Share(group mark.Group, svc *corev1.Service, id string, most, quota int) int {
	if group.IsZero() || quota <= 0 {
		return most
	}
	r, err := g.roster(group, svc, true)
	if err != nil {
		return most
	}
	place := sharing.Decide(r.services, r.balancers, r.most, svc.UID)
	if place.Services < 2 { //nolint:mnd // it is alone
		return most
	}
	share := max(quota/g.parts(&place, id), 1)
	if most == 0 {
		return share
	}
	return min(most, share)
}

// parts is into how many parts the backend servers of a load balancer are divided, one for each listener of those that are on it and that are coming. It
// counts in powers of two, so that not each Service that comes or goes changes the backend servers of all others.
func (g *Groups[LB]) parts(place *sharing.Place, id string) int {
	parts := 1
	for parts < place.Listeners {
		parts *= 2
	}
	most, _ := g.Cloud.Room(id)
	return min(parts, max(most, place.Listeners))
}

// LeastPerPort is how many backend servers each port of a Service has room for on a load balancer that it shares.
const LeastPerPort = 4

// RoomFor is how many listeners a load balancer has room for: as many as the quotas leave, with some backend servers for each.
func RoomFor(listeners, backends int) int { return max(min(listeners, backends/LeastPerPort), 1) }
