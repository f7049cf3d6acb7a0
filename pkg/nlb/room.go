package nlb

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// Room implements service.Balancer. Servers of groups of the type Ip are known by their addresses only.
func (n nlb) Room(in service.Inputs) backend.Room {
	owner := n.ownerOf(in.Service, n.observed)
	input := n.Backends(in)
	instances := map[string]string{}
	if in.Params.Get(annotation.ServerGroupType) == alicloud.NLBIPGroup && !input.Pods {
		for _, node := range input.Ready() {
			instances[node.Address] = node.InstanceID
		}
	}
	entries := func(yield func(backend.Entry) bool) {
		actual := n.model()
		if actual == nil {
			return
		}
		for i := range actual.Groups {
			group := &actual.Groups[i]
			for k := range group.Servers {
				server := &group.Servers[k]
				entry := entryOf(server, instances, !group.Foreign && server.Description == group.Name || owner.OwnsNLB(server.Description))
				if entry.Group = group.Name; group.Foreign {
					entry.Group = server.Description
				}
				if !yield(entry) {
					return
				}
			}
		}
	}
	limit := n.config.Quotas.Limit(quota.ServersPerNLB)
	room := backend.RoomOf(limit.Value, limit.Assumed, backend.GroupsOf(in.Service.Spec.Ports, func(port corev1.ServicePort) string {
		if input.Pods {
			return string(port.Protocol) + backend.TargetPort(port)
		}
		return string(port.Protocol) + strconv.Itoa(int(port.NodePort))
	}), entries)
	room.Most = n.shared.Share(n.group, in.Service, n.ID(), room.Most, limit.Value)
	return room
}

func entryOf(server *alicloud.NLBServer, instances map[string]string, ours bool) backend.Entry {
	switch server.Type {
	case alicloud.NLBServerECS:
		return backend.Entry{Kind: backend.KindInstance, ID: server.ID, Ours: ours}
	case alicloud.NLBServerIP:
		if id := instances[server.IP]; id != "" {
			return backend.Entry{Kind: backend.KindInstance, ID: id, Ours: ours}
		}
	}
	return backend.Entry{Kind: backend.KindInterface, ID: server.IP, Ours: ours}
}

// suspected returns those of the refused instances that may be backend servers as many times as they may be. The code of the refusal is the same when the NLB or one
// of its groups has too many servers. Nobody has these quotas lowered, so an NLB that is known to have less than half of its servers is not the cause.
// Without that, Services go on to ask for instances that the cloud refuses, and none makes room for another one.
func (n nlb) suspected(refused []string) []string {
	actual := n.model()
	if len(refused) == 0 || actual == nil {
		return nil
	}
	servers := 0
	for i := range actual.Groups {
		servers += len(actual.Groups[i].Servers)
	}
	if limit := n.config.Quotas.Limit(quota.ServersPerNLB); limit.Value > 0 && servers >= limit.Value/2 {
		return nil
	}
	return refused
}
