package slb

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Room implements service.Balancer.
func (c clb) Room(in service.Inputs) backend.Room {
	clusterID, _ := c.markedOn(in.Service, serverOf(in))
	owner := mark.OwnerOf(in.Service, clusterID)
	entries := func(yield func(backend.Entry) bool) {
		actual := c.model()
		if actual == nil {
			return
		}
		for i := range actual.Groups {
			group := &actual.Groups[i]
			whole := owner.Owns(group.Name)
			ours, text := whole, group.Name
			for k := range group.Backends {
				server := &group.Backends[k]
				if server.Description != text { // most are the same
					ours, text = whole || owner.Owns(server.Description), server.Description
				}
				if !yield(entryOf(server, ours)) {
					return
				}
			}
		}
	}
	limit := c.config.Quotas.Of(quota.BackendsPerCLB, c.ID())
	usesPods := c.Backends(in).Pods
	room := backend.RoomOf(limit.Value, limit.Assumed, backend.GroupsOf(in.Service.Spec.Ports, func(port corev1.ServicePort) string {
		if usesPods {
			return backend.TargetPort(port)
		}
		return strconv.Itoa(int(port.NodePort))
	}), entries)
	room.Swaps = true
	if !c.group.IsZero() && limit.Value > 0 {
		room.Most = c.share(in.Service, room.Most, limit.Value)
	}
	return room
}

// share is how many backend servers each port of a Service may have on a CLB that it shares. The number of listeners counts in powers of two, so that
// not each Service that comes or goes changes the backend servers of all others.
func (c clb) share(svc *corev1.Service, most, quota int) int {
	place, _, err := c.shared.Decide(c.group, svc)
	if err != nil || place.Services < 2 { //nolint:mnd // it is alone
		return most
	}
	parts := 1
	for parts < place.Listeners {
		parts *= 2
	}
	share := max(quota/min(parts, max(c.roomOf(c.ID()), place.Listeners)), 1)
	if most == 0 {
		return share
	}
	return min(most, share)
}

// learn notes how many backend servers a CLB has where the cloud refused one more.
func (c clb) learn(actual *model.Model, err error) {
	if !deploy.IsOverQuota(err) || !c.group.IsZero() { // what others have on it is not known
		return
	}
	total := 0
	for i := range actual.Groups {
		total += len(actual.Groups[i].Backends)
	}
	if total > 0 {
		c.config.Quotas.Learn(quota.BackendsPerCLB, actual.LoadBalancer.ID, total)
	}
}

func entryOf(server *alicloud.Backend, ours bool) backend.Entry {
	if server.Type == alicloud.BackendENI {
		return backend.Entry{Kind: backend.KindInterface, ID: server.ServerIP, Ours: ours}
	}
	return backend.Entry{Kind: backend.KindInstance, ID: server.ServerID, Ours: ours}
}
