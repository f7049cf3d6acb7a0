package nlb

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// Room implements driver.Balancer. Servers of groups of the type Ip are known by their addresses only.
func (n nlb) Room(in driver.Inputs) backend.Room {
	owner := n.ownerOf(in.Service, n.observed)
	input := n.Backends(in)
	instances := map[string]string{}
	if in.Params.Get(annotation.ServerGroupType) == alicloud.NLBIPGroup && !input.Pods {
		for _, node := range input.Ready() {
			instances[node.Address] = node.InstanceID
		}
	}
	entries := func(yield func(backend.Entry) bool) {
		actual := n.wholeModel()
		if actual == nil {
			return
		}
		for i := range actual.Groups {
			group := &actual.Groups[i]
			idle, moves := !n.hasListenerTo(group.ID), n.memory.Moves(group.ID)
			for k := range group.Servers {
				server := &group.Servers[k]
				entry := entryOf(server, instances, !group.Foreign && server.Description == group.Name || owner.OwnsNLB(server.Description))
				entry.Idle, entry.Former = idle, moves
				if entry.Group = group.Name; group.Foreign {
					entry.Group, _, _ = mark.Undrained(server.Description)
				}
				if !yield(entry) {
					return
				}
			}
		}
	}
	limit := n.config.Quotas.Of(quota.ServersPerNLB, n.ID())
	room := backend.RoomOf(limit.Value, limit.Assumed, backend.GroupsOf(in.Service.Spec.Ports, func(port corev1.ServicePort) string {
		if input.Pods {
			return string(port.Protocol) + backend.TargetPort(port)
		}
		return string(port.Protocol) + strconv.Itoa(int(port.NodePort))
	}), entries)
	n.shared.Divide(&room, n.Group, in.Service, n.ID())
	return room
}

// noteServers notes how many servers the Service has on the NLB of its group. What it has of one that it is about to leave counts as before
// until it is gone.
func (n *nlb) noteServers(svc *corev1.Service) {
	if !n.Group.IsZero() && n.ID() != "" && n.former == "" {
		n.shared.Hold(svc, n.ID(), n.behindListeners(svc))
	}
}

// behindListeners returns how many servers the Service has behind its listeners. Those of other groups do not count for the quota.
func (n *nlb) behindListeners(svc *corev1.Service) int {
	used, servers := n.usedGroups(svc), 0
	for i := range n.groups.Value {
		if group := &n.groups.Value[i]; used.Has(group.ID) {
			servers += len(group.Servers)
		}
	}
	return servers
}

// usedGroups are the ids of the groups that listeners of the Service send to.
func (n *nlb) usedGroups(svc *corev1.Service) sets.Set[string] {
	owner, used := n.ownerOf(svc, n.observed), sets.New[string]()
	for i := range n.listeners.Value {
		if l := &n.listeners.Value[i]; owner.OwnsNLB(model.Text(l.Description)) {
			used.Insert(model.Text(l.ServerGroupID))
		}
	}
	return used
}

// mostServers returns how many servers the Service may have behind its listeners: as many as the NLB may have, without those of the other
// Services of its group. While it is not known what these have, the Service may have no more than it has: with fewer, the NLB would seem to
// have room, and its quota not to be what the cloud refuses something for.
func (n *nlb) mostServers(svc *corev1.Service) int {
	most := n.config.Quotas.Of(quota.ServersPerNLB, n.ID()).Value
	if n.Group.IsZero() {
		return most
	}
	own := n.behindListeners(svc)
	total, all := n.allServers(svc)
	if !all {
		return own
	}
	return most - (total - own)
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

// suspectedInstances returns those of the refused instances that may be backend servers as many times as they may be. The code of the
// refusal is the same when the NLB or one of its groups has too many servers. Nobody has these quotas lowered, so an NLB that is known to
// have less than half of its servers is not the cause. Of an NLB that is another's, or that Services share, it is not known how many
// servers it has. Without that, Services go on to ask for instances that the cloud refuses, and none makes room for another one.
func (n nlb) suspectedInstances(refused []string) []string {
	actual := n.wholeModel()
	if len(refused) == 0 || actual == nil || n.Reused() || !n.Group.IsZero() {
		return nil
	}
	servers := 0
	for i := range actual.Groups {
		servers += len(actual.Groups[i].Servers)
	}
	if limit := n.config.Quotas.Of(quota.ServersPerNLB, n.ID()); limit.Value > 0 && servers >= limit.Value/2 {
		return nil
	}
	return refused
}
