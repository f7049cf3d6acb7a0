package slb

import (
	"strconv"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) otherActions() []api.Action {
	return []api.Action{
		{Name: "DescribeRegions", Kind: api.Read, Params: []api.Param{api.Str("AcceptLanguage")}, Run: s.describeRegions},
		{Name: "DescribeZones", Kind: api.Read, Run: s.describeZones},
		{Name: "DescribeAvailableResource", Kind: api.Read, Params: []api.Param{
			api.Str("AddressType", api.OneOf("vpc", "classic_internet", "classic_intranet")), api.Str("AddressIPVersion", api.OneOf("ipv4", "ipv6")),
		}, Run: s.describeAvailable},
		{Name: "DescribeHealthStatus", Kind: api.Read, Params: []api.Param{
			lbID(), api.Num("ListenerPort", 1, 65535), api.Str("ListenerProtocol", api.OneOf("tcp", "udp", "http", "https")),
		}, Run: s.describeHealth},
	}
}

func (s service) describeRegions(*api.Call) (any, error) {
	type region struct{ RegionId, LocalName, RegionEndpoint string } //nolint:revive // names on the wire
	var answer struct{ Regions struct{ Region []region } }
	answer.Regions.Region = []region{{s.Region, s.Region, "slb." + s.Region + ".aliyuncs.com"}}
	return answer, nil
}

type zoneRef struct{ ZoneId, LocalName string } //nolint:revive // names on the wire

// others are all zones but one: any of them can be the secondary of it.
func (s service) others(zone string) []zoneRef {
	refs := []zoneRef{}
	for _, z := range s.Zones() {
		if z != zone {
			refs = append(refs, zoneRef{z, z})
		}
	}
	return refs
}

func (s service) describeZones(*api.Call) (any, error) {
	type zone struct {
		zoneRef
		SlaveZones struct{ SlaveZone []zoneRef }
	}
	var answer struct{ Zones struct{ Zone []zone } }
	answer.Zones.Zone = []zone{}
	for _, id := range s.Zones() {
		z := zone{zoneRef: zoneRef{id, id}}
		z.SlaveZones.SlaveZone = s.others(id)
		answer.Zones.Zone = append(answer.Zones.Zone, z)
	}
	return answer, nil
}

func (s service) describeAvailable(c *api.Call) (any, error) {
	type support struct{ AddressType, AddressIPVersion string }
	type resource struct { //nolint:revive // names on the wire
		MasterZoneId, SlaveZoneId string
		SupportResources          struct{ SupportResource []support }
	}
	var answer struct {
		AvailableResources struct{ AvailableResource []resource }
	}
	answer.AvailableResources.AvailableResource = []resource{}
	for _, id := range s.Zones() {
		for _, other := range s.others(id) {
			r := resource{MasterZoneId: id, SlaveZoneId: other.ZoneId}
			for _, kind := range []string{"vpc", "classic_internet"} {
				if !c.Has("AddressType") || c.Str("AddressType") == kind {
					r.SupportResources.SupportResource = append(r.SupportResources.SupportResource, support{kind, c.Or("AddressIPVersion", "ipv4")})
				}
			}
			answer.AvailableResources.AvailableResource = append(answer.AvailableResources.AvailableResource, r)
		}
	}
	return answer, nil
}

type healthView struct { //nolint:revive // names on the wire
	ServerId, ServerIp   string
	Port                 int
	Protocol             string
	ListenerPort         int
	ServerHealthStatus   string
	Weight               int
	Type, VpcId, EniHost string
	Description          string
}

func (s service) describeHealth(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c)
	if err != nil {
		return nil, err
	}
	var answer struct {
		BackendServers struct{ BackendServer []healthView }
	}
	answer.BackendServers.BackendServer = []healthView{}
	found := false
	for _, l := range lb.SortedListeners() {
		if (c.Has("ListenerPort") && c.Str("ListenerPort") != strconv.Itoa(l.Port)) ||
			(c.Has("ListenerProtocol") && c.Str("ListenerProtocol") != l.Protocol) {
			continue
		}
		found = true
		g, ok := s.ServerGroups.Get(l.ServerGroupID)
		if !ok {
			continue
		}
		for _, b := range g.Backends {
			answer.BackendServers.BackendServer = append(answer.BackendServers.BackendServer, healthView{
				ServerId: b.ServerID, ServerIp: b.ServerIP, Port: b.Port, Protocol: l.Protocol, ListenerPort: l.Port,
				ServerHealthStatus: s.health(lb, l, b, c), Weight: b.Weight, Type: b.Type, VpcId: lb.VPCID, Description: b.Description,
			})
		}
	}
	if c.Has("ListenerPort") && !found {
		return nil, listenerNotFound()
	}
	return answer, nil
}

// health is what the checks of a listener have found out about a backend server.
func (s service) health(lb *cloud.LoadBalancer, l *cloud.Listener, b cloud.Backend, c *api.Call) string {
	checks := l.Attributes["HealthCheckSwitch"] == "on" || l.Attributes["HealthCheck"] == "on"
	switch {
	case l.Phase.At(c.Now) != cloud.ListenerRunning:
		return "unavailable"
	case !checks && c.Holds("slb.unchecked-unavailable"):
		return "unavailable"
	}
	if s.Health != nil && checks {
		if found, checked := s.Health(lb.ListenerID(l.ListenerKey), b.BackendID()); checked {
			return found.Status
		}
	}
	id := b.ServerID
	if eni, ok := s.Interfaces.Get(b.ServerID); ok {
		id = eni.InstanceID
	}
	if i, ok := s.Instances.Get(id); !ok || i.Status(c.Now) != cloud.Running {
		return "abnormal"
	}
	return "normal"
}
