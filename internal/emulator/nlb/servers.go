package nlb

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Types of backend servers.
const (
	ecsServer = "Ecs"
	eniServer = "Eni"
	eciServer = "Eci"
	ipServer  = "Ip"
)

const maxWeight = 100

func (s service) serverActions() []api.Action {
	id := []api.Param{
		api.Str("ServerId", api.Required), api.Str("ServerType", api.Required, api.OneOfAnyCase(ecsServer, eniServer, eciServer, ipServer)),
		api.Str("ServerIp"),
		api.Num("Port", 0, 65535),
	}
	servers := func(more ...api.Param) api.Param {
		return required(api.ObjectsOf("Servers", 0, slices.Concat(id, more)...))
	}
	settings := []api.Param{api.Num("Weight", 0, maxWeight), api.Str("Description", api.Len(2, 256))}
	return []api.Action{
		{Name: "ListServerGroupServers", Kind: api.Read,
			Params: list(api.Str("ServerGroupId"), api.ListOf("ServerIds", 40), api.ListOf("ServerIps", 40)), Run: s.listServers},
		{Name: "AddServersToServerGroup", Kind: api.Write, Params: write(groupID(), servers(settings...)), Run: s.changingServers(s.addServers)},
		{Name: "RemoveServersFromServerGroup", Kind: api.Write, Params: write(groupID(), servers()), Run: s.changingServers(s.removeServers)},
		{Name: "UpdateServerGroupServersAttribute", Kind: api.Write, Params: write(groupID(), servers(settings...)),
			Run: s.changingServers(s.updateServers)},
	}
}

// serverChange changes the backend servers of a group, or nothing where it fails. Without apply it checks only.
type serverChange func(c *api.Call, g *cloud.NLBGroup, servers []*cloud.NLBServer, apply bool) *api.Error

// changingServers is the frame of the writes on the backend servers of a group, which must be available.
func (s service) changingServers(f serverChange) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		return s.once(c, func() (any, error) {
			g, err := s.writableGroup(c)
			if err != nil {
				return nil, err
			}
			servers, bad := s.parseServers(c)
			if bad != nil {
				return nil, bad
			}
			if bad := f(c, g, servers, false); bad != nil {
				return nil, bad
			}
			return checked(c, func() (any, error) {
				if bad := f(c, g, servers, true); bad != nil {
					return nil, bad
				}
				answer, err := s.configuringGroup(c, g)
				s.Reap(c.Now)
				return answer, err
			})
		})
	}
}

// observed are the limits that clients in production rely on.
var observed = cloud.Observed()

func (s service) parseServers(c *api.Call) ([]*cloud.NLBServer, *api.Error) {
	given := c.Objects("Servers")
	if len(given) >= observed.NLBServersPerCall {
		c.Holds("nlb.servers-per-call-40")
	}
	if len(given) > s.Limits.NLBServersPerCall {
		return nil, api.BadRequest("IllegalParamSize.Servers", "At most %d servers in one call.", s.Limits.NLBServersPerCall)
	}
	servers := make([]*cloud.NLBServer, 0, len(given))
	for _, o := range given {
		v := &cloud.NLBServer{
			ID: o.Str("ServerId"), IP: o.Str("ServerIp"), Type: o.Str("ServerType"), Port: o.Int("Port", 0), Weight: o.Int("Weight", maxWeight),
			Description: o.Str("Description"),
		}
		if v.Type == ipServer && v.IP == "" {
			v.IP = v.ID
		}
		if indexOf(servers, v) >= 0 {
			return nil, api.BadRequest("DuplicatedParam.Server", "The server %s is given twice.", v.ID)
		}
		servers = append(servers, v)
	}
	return servers, nil
}

// indexOf finds a server by its identity. A server without an address names the one of its type, id and port.
func indexOf(servers []*cloud.NLBServer, want *cloud.NLBServer) int {
	return slices.IndexFunc(servers, func(v *cloud.NLBServer) bool {
		return v.Same(want) || want.IP == "" && v.Type == want.Type && v.ID == want.ID && v.Port == want.Port
	})
}

func (s service) addServers(c *api.Call, g *cloud.NLBGroup, servers []*cloud.NLBServer, apply bool) *api.Error {
	live := g.LiveServers(c.Now)
	for _, v := range servers {
		if bad := s.checkServer(g, v); bad != nil {
			return bad
		}
		if indexOf(live, v) >= 0 {
			return api.BadRequest("DuplicatedParam.Server", "The server %s with the port %d is in the group.", v.ID, v.Port)
		}
	}
	if bad := s.checkServerQuotas(c, g, live, servers); bad != nil {
		return bad
	}
	if !apply {
		return nil
	}
	for _, v := range servers {
		v.Phase = s.transition(c, cloud.NLBAdding, cloud.Available, "")
		g.Servers = append(g.Servers, v)
	}
	return nil
}

func (s service) checkServerQuotas(c *api.Call, g *cloud.NLBGroup, live, more []*cloud.NLBServer) *api.Error {
	if len(live)+len(more) > s.Limits.ServersPerNLBGroup {
		return quota("nlb_quota_servergroup_servers_num", s.Limits.ServersPerNLBGroup)
	}
	for _, l := range s.NLBListenersTo(g.ID, c.Now) {
		if s.counted(c, l.LoadBalancerID)+len(more) > s.Limits.ServersPerNLB {
			return quota("nlb_quota_loadbalancer_noeci_servers_num", s.Limits.ServersPerNLB)
		}
	}
	for _, groups := range s.groupsOf(c, more) {
		if groups >= s.Limits.NLBGroupsPerServer {
			return quota("nlb_quota_server_added_num", s.Limits.NLBGroupsPerServer)
		}
	}
	return nil
}

// counted is how many servers count for the quota of a load balancer.
func (s service) counted(c *api.Call, id string) int {
	count := s.NLBServersOf(id, c.Now)
	if leaving := s.NLBServersLeaving(id, c.Now); leaving > 0 && !c.Holds("nlb.removing-counts") {
		count -= leaving
	}
	return count
}

// serverName is what counts as one server in several groups.
type serverName struct{ kind, id string }

// groupsOf counts the groups that have each of the servers, in one pass over all of them.
func (s service) groupsOf(c *api.Call, servers []*cloud.NLBServer) map[serverName]int {
	groups := make(map[serverName]int, len(servers))
	for _, v := range servers {
		groups[serverName{v.Type, v.ID}] = 0
	}
	inGroup := make(map[serverName]bool, len(servers))
	for g := range s.NLBGroups.All() {
		clear(inGroup)
		for _, v := range g.Servers {
			name := serverName{v.Type, v.ID}
			if n, wanted := groups[name]; wanted && !inGroup[name] && v.Phase.At(c.Now) != "" {
				groups[name], inGroup[name] = n+1, true
			}
		}
	}
	return groups
}

// checkServer checks that a server exists and fits the group, and fills in its zone.
func (s service) checkServer(g *cloud.NLBGroup, v *cloud.NLBServer) *api.Error {
	switch {
	case (v.Type == ipServer) != (g.Type == ipGroup):
		return api.BadRequest("Mismatch.ServerType", "A group of type %s takes no server of type %s.", g.Type, v.Type)
	case (v.Port == 0) != g.AnyPort:
		return api.BadRequest("IllegalParam.RSPortConflictWithServerGroup", "The port %d does not fit the group.", v.Port)
	}
	switch v.Type {
	case ipServer:
		return s.checkIP(v)
	case ecsServer:
		return s.checkECS(g, v)
	}
	return s.checkENI(g, v)
}

func (s service) checkIP(v *cloud.NLBServer) *api.Error {
	addr, err := netip.ParseAddr(v.IP)
	if err != nil || isPublic(addr) && addr.Is4() {
		return api.BadRequest("IllegalParam.IP", "The address %s is not one of a private network.", v.IP)
	}
	return nil
}

func (s service) checkECS(g *cloud.NLBGroup, v *cloud.NLBServer) *api.Error {
	i, ok := s.Instances.Get(v.ID)
	if !ok || i.VPCID != g.VPCID {
		return notFound("Ecs", v.ID)
	}
	v.IP, v.ZoneID = i.PrivateIP, i.ZoneID
	return nil
}

// checkENI checks a network interface or a container instance, both of which are named with the address to send to.
func (s service) checkENI(g *cloud.NLBGroup, v *cloud.NLBServer) *api.Error {
	if v.IP == "" {
		return api.BadRequest("MissingParam.IP", "A server of type %s needs an address.", v.Type)
	}
	if v.Type == eciServer {
		if !s.IsContainer(v.ID) {
			return notFound("Eci", v.ID)
		}
		return nil
	}
	eni, ok := s.Interfaces.Get(v.ID)
	if !ok || eni.VPCID != g.VPCID || !slices.Contains(eni.PrivateIPs, v.IP) && !slices.Contains(eni.IPv6s, v.IP) {
		return notFound("Eni", v.ID)
	}
	v.ZoneID = eni.ZoneID
	return nil
}

// removeServers refuses the whole call where one server is not in the group, or on its way out.
func (s service) removeServers(c *api.Call, g *cloud.NLBGroup, servers []*cloud.NLBServer, apply bool) *api.Error {
	for _, v := range servers {
		i := indexOf(g.Servers, v)
		if i < 0 || g.Servers[i].Phase.At(c.Now) == "" || !apply && g.Servers[i].Phase.At(c.Now) == cloud.NLBRemoving {
			return backendNotFound(v)
		}
		if apply {
			g.Servers[i].Phase = s.leaving(c, g)
		}
	}
	return nil
}

// leaving is the state of a server on its way out. Whether one whose connections are drained is Removing for longer than the job takes, no
// document says.
func (s service) leaving(c *api.Call, g *cloud.NLBGroup) cloud.Phase {
	if g.ConnectionDrain && applies(c) && !c.Holds("nlb.removing-ends-with-job") {
		return s.BeginFor(cloud.NLBRemoving, "", c.Now, max(s.Settle, time.Duration(g.ConnectionDrainTimeout)*time.Second))
	}
	return s.transition(c, cloud.NLBRemoving, "", cloud.Available)
}

func backendNotFound(v *cloud.NLBServer) *api.Error {
	return notFound("BackendServer", v.ID+":"+strconv.Itoa(v.Port))
}

// updateServers changes weight and description; the port is a part of the identity.
func (s service) updateServers(c *api.Call, g *cloud.NLBGroup, servers []*cloud.NLBServer, apply bool) *api.Error {
	given := c.Objects("Servers")
	for n, v := range servers {
		i := indexOf(g.Servers, v)
		if i < 0 || g.Servers[i].Phase.At(c.Now) == "" {
			return backendNotFound(v)
		}
		if !apply {
			continue
		}
		if applies(c) {
			if given[n].Has("Weight") {
				g.Servers[i].Weight = v.Weight
			}
			g.Servers[i].Description = given[n].Or("Description", g.Servers[i].Description)
		}
		g.Servers[i].Phase = s.transition(c, cloud.NLBConfiguring, cloud.Available, cloud.Available)
	}
	return nil
}

type serverView struct { //nolint:revive // names on the wire
	ServerGroupId, ServerId, ServerIp, ServerType, Status, ZoneId, Description string
	Port, Weight                                                               int
}

func viewOfServer(c *api.Call, g *cloud.NLBGroup, v *cloud.NLBServer) serverView {
	return serverView{
		ServerGroupId: g.ID, ServerId: v.ID, ServerIp: v.IP, ServerType: v.Type, Status: v.Phase.At(c.Now), ZoneId: v.ZoneID,
		Description: v.Description, Port: v.Port, Weight: v.Weight,
	}
}

func (s service) listServers(c *api.Call) (any, error) {
	groups := s.NLBGroups.Select(func(g *cloud.NLBGroup) bool {
		return g.Phase.At(c.Now) != "" && c.Finds(g.Created) && c.Or("ServerGroupId", g.ID) == g.ID
	})
	if c.Has("ServerGroupId") && len(groups) == 0 {
		return nil, notFound("serverGroup", c.Str("ServerGroupId"))
	}
	var all []serverView
	for _, g := range groups {
		for _, v := range g.LiveServers(c.Now) {
			if !passes(c.List("ServerIds"), v.ID) || !passes(c.List("ServerIps"), v.IP) {
				continue
			}
			all = append(all, viewOfServer(c, g, v))
		}
	}
	return listedInPlace(c, "Servers", all, c.Int("MaxResults", defaultPage))
}
