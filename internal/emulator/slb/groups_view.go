package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

type backendView struct { //nolint:revive // names on the wire
	ServerId, ServerIp     string
	Port, Weight           int
	Type, Description      string
	VpcId, ServerRegionId  string
	VbrId                  string
	ProxyProtocolV2Enabled bool
}

type backendList struct{ BackendServer []backendView }

// groupAnswer is the answer of every call about one group: the whole group after the call.
type groupAnswer struct { //nolint:revive // names on the wire
	VServerGroupId, VServerGroupName, LoadBalancerId, CreateTime string
	BackendServers                                               backendList
	Tags                                                         tagList
}

func (s service) backendsAnswer(g *cloud.ServerGroup, lb *cloud.LoadBalancer) groupAnswer {
	a := groupAnswer{VServerGroupId: g.ID, VServerGroupName: g.Name, LoadBalancerId: lb.ID, CreateTime: cloud.Timestamp(g.Created)}
	a.BackendServers.BackendServer = make([]backendView, 0, len(g.Backends))
	for _, b := range g.Backends {
		a.BackendServers.BackendServer = append(a.BackendServers.BackendServer, backendView{
			ServerId: b.ServerID, ServerIp: b.ServerIP, Port: b.Port, Weight: b.Weight, Type: b.Type,
			Description: b.Description, VpcId: lb.VPCID, ServerRegionId: s.Region,
		})
	}
	a.Tags.Tag = g.Tags.Views()
	return a
}

func (s service) describeGroup(c *api.Call) (any, error) {
	g, lb, err := s.group(c)
	if err != nil {
		return nil, err
	}
	answer := s.backendsAnswer(g, lb)
	answer.BackendServers.BackendServer = slices.DeleteFunc(answer.BackendServers.BackendServer, func(b backendView) bool {
		_, exists := s.Instances.Get(b.ServerId)
		return b.Type == "ecs" && !exists && !c.Holds("slb.released-server-stays")
	})
	return answer, nil
}

type listenerRef struct {
	Protocol string
	Port     int
}

type groupListView struct { //nolint:revive // names on the wire
	VServerGroupId, VServerGroupName string
	ServerCount                      int
	CreateTime, ServiceManagedMode   string
	AssociatedObjects                struct {
		Listeners struct{ Listener []listenerRef }
		Rules     struct{ Rule []struct{ RuleId string } }
	}
	Tags tagList
}

func (s service) describeGroups(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c)
	if err != nil {
		return nil, err
	}
	tags := cloud.TagsIn(c)
	var answer struct {
		VServerGroups struct{ VServerGroup []groupListView }
	}
	answer.VServerGroups.VServerGroup = make([]groupListView, 0, len(lb.Groups))
	for _, id := range lb.Groups {
		g, ok := s.ServerGroups.Get(id)
		if !ok || (c.Has("Description") && c.Str("Description") != g.Name) || !cloud.Searched(c, g.Object, g.Tagged, cloud.HavingAll(tags)) ||
			!c.Sees(g.Created) {
			continue
		}
		v := groupListView{
			VServerGroupId: g.ID, VServerGroupName: g.Name, ServerCount: len(g.Backends),
			CreateTime: cloud.Timestamp(g.Created), ServiceManagedMode: "Unmanaged", Tags: tagList{g.Tags.Views()},
		}
		v.AssociatedObjects.Listeners.Listener = []listenerRef{}
		v.AssociatedObjects.Rules.Rule = []struct{ RuleId string }{} //nolint:revive // names on the wire
		if c.Bool("IncludeListener", false) {
			for _, l := range lb.UsedBy(g.ID) {
				v.AssociatedObjects.Listeners.Listener = append(v.AssociatedObjects.Listeners.Listener, listenerRef{l.Protocol, l.Port})
			}
		}
		answer.VServerGroups.VServerGroup = append(answer.VServerGroups.VServerGroup, v)
	}
	return answer, nil
}
