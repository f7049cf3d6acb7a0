package slb

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Room implements driver.Balancer.
func (c clb) Room(in driver.Inputs) backend.Room {
	clusterID, _ := c.markedOn(in.Service, serverOf(in))
	owner := mark.OwnerOf(in.Service, clusterID)
	entries := func(yield func(backend.Entry) bool) {
		actual := c.wholeModel()
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
				entry := entryOf(server, ours)
				if entry.Group = group.Name; !whole {
					entry.Group, _, _ = mark.Undrained(server.Description)
				}
				if !yield(entry) {
					return
				}
			}
		}
	}
	limit := c.config.Quotas.Of(quota.BackendsPerCLB, c.ID())
	usesPods := c.Backends(in).Pods
	room := backend.RoomOf(limit.Value, limit.Assumed, backend.GroupsOf(c.portRoom(in).Ports, func(port corev1.ServicePort) string {
		if usesPods {
			return backend.TargetPort(port)
		}
		return strconv.Itoa(int(port.NodePort))
	}), entries)
	room.Swaps = true
	c.shared.Divide(&room, c.Group, in.Service, c.ID())
	return room
}

// learnFull notes how many backend servers a CLB has where the cloud refused one more.
func (c clb) learnFull(err error) {
	if !deploy.IsOverQuota(err) || c.ID() == "" {
		return
	}
	total, all := serversOf(c.groups.Value), true
	if !c.Group.IsZero() {
		total, all = c.shared.Servers(c.Group, c.ID())
		c.full.Add(c.ID(), &fullError{total}, fullPause, time.Now())
	}
	if all && total > 0 { // a new process does not know yet what others have
		c.config.Quotas.Learn(quota.BackendsPerCLB, c.ID(), total)
	}
}

func serversOf(groups []model.Group) int {
	servers := 0
	for i := range groups {
		servers += len(groups[i].Backends)
	}
	return servers
}

func entryOf(server *alicloud.Backend, ours bool) backend.Entry {
	if server.Type == alicloud.BackendENI {
		return backend.Entry{Kind: backend.KindInterface, ID: server.ServerIP, Ours: ours}
	}
	return backend.Entry{Kind: backend.KindInstance, ID: server.ServerID, Ours: ours}
}
