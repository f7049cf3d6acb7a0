package nlb

import (
	"net/netip"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Types of server groups.
const (
	instanceGroup = "Instance"
	ipGroup       = "Ip"
)

// groupSettings are the parameters that creation and update share.
func groupSettings() []api.Param {
	check := func(name string) string { return "HealthCheckConfig." + name }
	return []api.Param{
		api.Flag("ConnectionDrainEnabled"), api.Num("ConnectionDrainTimeout", 0, 900),
		api.Str("Scheduler", api.OneOfAnyCase("Wrr", "Wlc", "rr", "sch", "tch", "qch")),
		api.Flag("PreserveClientIpEnabled"),
		api.Flag(check("HealthCheckEnabled")), api.Str(check("HealthCheckType"), api.OneOfAnyCase(tcp, "HTTP", udp)),
		api.Num(check("HealthCheckConnectPort"), 0, 65535),
		api.Num(check("HealthCheckConnectTimeout"), 1, 300), api.Num(check("HealthCheckInterval"), 1, 300),
		api.Num(check("HealthyThreshold"), 2, 10),
		api.Num(check("UnhealthyThreshold"), 2, 10), api.Str(check("HealthCheckDomain"), api.Len(1, 80)),
		api.Str(check("HealthCheckUrl"), api.Len(1, 80)),
		api.Str(check("HttpCheckMethod"), api.OneOfAnyCase("GET", "HEAD")), api.ListOf(check("HealthCheckHttpCode"), 0),
		api.Str(check("HealthCheckHttpVersion"), api.OneOfAnyCase("HTTP1.0", "HTTP1.1")),
		api.Str(check("HealthCheckReq"), api.Len(1, 512)), api.Str(check("HealthCheckExp"), api.Len(1, 512)),
	}
}

func (s service) groupActions() []api.Action {
	create := append(groupSettings(),
		api.Str("ServerGroupName", api.Required), api.Str("VpcId", api.Required),
		api.Str("ServerGroupType", api.OneOfAnyCase(instanceGroup, ipGroup)),
		api.Str("Protocol", api.OneOfAnyCase(tcp, udp, "TCP_UDP", tcpSSL)), api.Str("AddressIPVersion", api.OneOfAnyCase(ipv4, dualStack)),
		api.Str("IpVersionAffinityMode", api.OneOfAnyCase("Affinity", "NonAffinity")), api.Flag("AnyPortEnabled"), api.Str("ResourceGroupId"),
		cloud.TagParams(cloud.MaxTags))
	return []api.Action{
		{Name: "CreateServerGroup", Kind: api.Write, Params: write(create...), Run: s.createGroup},
		{Name: "ListServerGroups", Kind: api.Read, Params: list(
			api.ListOf("ServerGroupIds", 20), api.ListOf("ServerGroupNames", 20), api.Str("VpcId"), api.Str("ServerGroupType"),
			api.Str("ResourceGroupId"), cloud.TagParams(10),
		), Run: s.listGroups},
		{Name: "UpdateServerGroupAttribute", Kind: api.Write, Params: write(append(groupSettings(), groupID(), api.Str("ServerGroupName"))...),
			Run: s.updateGroup},
		{Name: "DeleteServerGroup", Kind: api.Write, Params: write(groupID()), Run: s.deleteGroup},
	}
}

// checkName accepts what the cloud calls a name: a letter, then letters, digits and a few marks.
func checkName(param, name string) *api.Error {
	if n := len([]rune(name)); n < 2 || n > 128 {
		return illegal(param, "2 to 128 characters, not %d", n)
	}
	return nil
}

func (s service) createGroup(c *api.Call) (any, error) {
	return s.once(c, func() (any, error) {
		g := &cloud.NLBGroup{
			Name: c.Str("ServerGroupName"), VPCID: c.Str("VpcId"), Type: c.Or("ServerGroupType", instanceGroup), Protocol: c.Or("Protocol", tcp),
			AddressVersion: c.Or("AddressIPVersion", ipv4), Affinity: c.Or("IpVersionAffinityMode", "NonAffinity"),
			AnyPort:         c.Bool("AnyPortEnabled", false),
			ResourceGroupID: c.Or("ResourceGroupId", "rg-emulator"), Scheduler: "Wrr", ConnectionDrainTimeout: 10,
			HealthCheck: cloud.NLBHealthCheck{Enabled: true, Type: tcp, ConnectTimeout: 5, Interval: 10, Healthy: 2, Unhealthy: 2},
		}
		// Addresses of clients cannot be kept where TLS ends at the load balancer, nor for servers known by their address.
		g.PreserveClientIP = g.Protocol != tcpSSL && g.Type != ipGroup
		g.Tags = g.Tags.With(cloud.TagsIn(c))
		setGroup(c, g)
		if bad := s.checkNewGroup(c, g); bad != nil {
			return nil, bad
		}
		if bad := s.checkGroup(c, g); bad != nil {
			return nil, bad
		}
		return checked(c, func() (any, error) {
			g.Object = s.NewObject("sgp")
			g.Phase = s.transition(c, cloud.NLBCreating, cloud.Available, "")
			s.NLBGroups.Add(g)
			return struct {
				jobAnswer
				ServerGroupId string //nolint:revive // name on the wire
			}{jobAnswer{s.job(c)}, g.ID}, nil
		})
	})
}

func (s service) checkNewGroup(c *api.Call, g *cloud.NLBGroup) *api.Error {
	if s.NLBGroups.Len() >= s.Limits.NLBGroups {
		return quota("servergroup", s.Limits.NLBGroups)
	}
	if _, ok := s.VPCs.Get(g.VPCID); !ok {
		return notFound("Vpc", g.VPCID)
	}
	if g.Protocol == tcpSSL && c.Holds("nlb.groups-tcpssl") && s.NLBGroupsRefuseTCPSSL {
		return illegal("Protocol", "TCP, UDP or TCP_UDP")
	}
	return nil
}

// setGroup takes over what the call says about a group; what it does not name stays.
func setGroup(c *api.Call, g *cloud.NLBGroup) {
	const check = "HealthCheckConfig."
	g.Name = c.Or("ServerGroupName", g.Name)
	g.Scheduler = c.Or("Scheduler", g.Scheduler)
	g.ConnectionDrain = c.Bool("ConnectionDrainEnabled", g.ConnectionDrain)
	g.ConnectionDrainTimeout = c.Int("ConnectionDrainTimeout", g.ConnectionDrainTimeout)
	g.PreserveClientIP = c.Bool("PreserveClientIpEnabled", g.PreserveClientIP)
	h := &g.HealthCheck
	h.Enabled, h.Type = c.Bool(check+"HealthCheckEnabled", h.Enabled), c.Or(check+"HealthCheckType", h.Type)
	h.ConnectPort, h.ConnectTimeout = c.Int(check+"HealthCheckConnectPort", h.ConnectPort), c.Int(check+"HealthCheckConnectTimeout",
		h.ConnectTimeout)
	h.Interval = c.Int(check+"HealthCheckInterval", h.Interval)
	h.Healthy, h.Unhealthy = c.Int(check+"HealthyThreshold", h.Healthy), c.Int(check+"UnhealthyThreshold", h.Unhealthy)
	h.Domain, h.URL, h.Method = c.Or(check+"HealthCheckDomain", h.Domain), c.Or(check+"HealthCheckUrl", h.URL), c.Or(check+"HttpCheckMethod",
		h.Method)
	if codes := c.List(check + "HealthCheckHttpCode"); len(codes) > 0 {
		h.Codes = codes
	} else if len(h.Codes) == 0 && h.Type == "HTTP" {
		h.Codes = []string{"http_2xx"}
	}
	if h.Version == "" && h.Type == "HTTP" {
		h.Version = "HTTP1.0"
	}
	h.Version, h.Request, h.Expect = c.Or(check+"HealthCheckHttpVersion", h.Version), c.Or(check+"HealthCheckReq",
		h.Request), c.Or(check+"HealthCheckExp", h.Expect)
}

// checkGroup holds the settings of a group to the rules between them.
func (s service) checkGroup(c *api.Call, g *cloud.NLBGroup) *api.Error {
	if bad := checkName("ServerGroupName", g.Name); bad != nil {
		return bad
	}
	switch {
	case g.PreserveClientIP && (g.Protocol == tcpSSL || g.Type == ipGroup):
		return api.BadRequest("IllegalParam.PreserveClientIpSwitch", "A group of this type cannot preserve the addresses of clients.")
	case g.Scheduler == "qch" && g.Protocol != udp:
		return illegal("Scheduler", "qch needs a UDP group")
	}
	return s.checkHealthCheck(c, g, g.HealthCheck)
}

// maxInterval is the longest interval between two checks of a group that is not UDP, in seconds; of a UDP one it is 300.
const maxInterval = 50

func (s service) checkHealthCheck(c *api.Call, g *cloud.NLBGroup, h cloud.NLBHealthCheck) *api.Error {
	switch {
	case !h.Enabled:
		return nil
	case g.AnyPort && h.ConnectPort == 0:
		return api.BadRequest("IllegalParam.AnyPortServerGroupConflictWithHealthCheckConfig",
			"A group for any port needs a port for its health check.")
	case h.Type == udp && g.Protocol != udp && (g.Protocol != tcpSSL || c.Holds("nlb.udp-checks-of-tcpssl") && s.NLBTCPSSLRefusesUDPChecks):
		return illegal("healthCheckType", "only a UDP group is checked by UDP")
	case h.Type == "HTTP" && h.URL != "" && h.URL[0] != '/':
		return api.BadRequest("IlleagalParam.healthCheckUrl", "The path starts with a slash.") // the misspelled code is the API's own
	}
	return checkInterval(g, h)
}

func checkInterval(g *cloud.NLBGroup, h cloud.NLBHealthCheck) *api.Error {
	switch {
	case g.Protocol != udp && h.Interval > maxInterval:
		return illegal("healthCheckInterval", "at most %d seconds", maxInterval)
	case h.Type == udp && h.Interval < h.ConnectTimeout:
		return illegal("healthCheckInterval", "at least the timeout of %d seconds", h.ConnectTimeout)
	}
	return nil
}

// group finds the group of a call.
func (s service) group(c *api.Call) (*cloud.NLBGroup, error) {
	g, ok := s.NLBGroups.Get(c.Str("ServerGroupId"))
	if !ok || g.Phase.At(c.Now) == "" || !c.Finds(g.Created) {
		return nil, notFound("serverGroup", c.Str("ServerGroupId"))
	}
	return g, nil
}

// writableGroup finds the group of a call that changes it, which has to be available.
func (s service) writableGroup(c *api.Call) (*cloud.NLBGroup, error) {
	g, err := s.group(c)
	if err != nil {
		return nil, err
	}
	if status := g.Phase.At(c.Now); status != cloud.Available {
		return nil, api.BadRequest("IncorrectStatus.serverGroup", "The status of %s is %s.", g.ID, status)
	}
	return g, nil
}

// configuringGroup puts a group into the state in which it takes no other write, and answers with the job.
func (s service) configuringGroup(c *api.Call, g *cloud.NLBGroup) (any, error) {
	g.Phase = s.transition(c, cloud.NLBConfiguring, cloud.Available, cloud.Available)
	return struct {
		jobAnswer
		ServerGroupId string //nolint:revive // name on the wire
	}{jobAnswer{s.job(c)}, g.ID}, nil
}

func (s service) updateGroup(c *api.Call) (any, error) {
	return s.once(c, func() (any, error) {
		g, err := s.writableGroup(c)
		if err != nil {
			return nil, err
		}
		updated := *g
		setGroup(c, &updated)
		if bad := s.checkGroup(c, &updated); bad != nil {
			return nil, bad
		}
		return checked(c, func() (any, error) {
			if applies(c) {
				*g = updated
			}
			return s.configuringGroup(c, g)
		})
	})
}

func (s service) deleteGroup(c *api.Call) (any, error) {
	g, err := s.writableGroup(c)
	if err != nil {
		return nil, err
	}
	if len(s.NLBListenersTo(g.ID, c.Now)) > 0 {
		return nil, api.BadRequest("ResourceInUse.ServerGroup", "The server group %s is in use.", g.ID)
	}
	return checked(c, func() (any, error) {
		g.Phase = s.transition(c, cloud.Deleting, "", cloud.Available)
		answer := jobAnswer{s.job(c)}
		s.Reap(c.Now)
		return answer, nil
	})
}

type (
	healthCheckView struct { //nolint:revive // names on the wire
		HealthCheckEnabled                                 bool
		HealthCheckType                                    string
		HealthCheckConnectPort, HealthCheckConnectTimeout  int
		HealthCheckInterval                                int
		HealthyThreshold, UnhealthyThreshold               int
		HealthCheckDomain, HealthCheckUrl, HttpCheckMethod string
		HealthCheckHttpCode                                []string
		HealthCheckHttpVersion                             string
		HealthCheckReq, HealthCheckExp                     string
	}
	groupView struct { //nolint:revive // names on the wire
		ServerGroupId, ServerGroupName, ServerGroupType, ServerGroupStatus string
		VpcId, RegionId, ResourceGroupId, Protocol, Scheduler              string
		AddressIPVersion, IpVersionAffinityMode                            string
		AnyPortEnabled, ConnectionDrainEnabled, PreserveClientIpEnabled    bool
		ConnectionDrainTimeout, ServerCount                                int
		HealthCheck                                                        healthCheckView
		RelatedLoadBalancerIds                                             []string
		Tags                                                               []tag
	}
)

func (s service) groupView(c *api.Call, g *cloud.NLBGroup) groupView {
	h := g.HealthCheck
	v := groupView{
		ServerGroupId: g.ID, ServerGroupName: g.Name, ServerGroupType: g.Type, ServerGroupStatus: g.Phase.At(c.Now), VpcId: g.VPCID,
		RegionId: s.Region, ResourceGroupId: g.ResourceGroupID, Protocol: g.Protocol, Scheduler: g.Scheduler, AddressIPVersion: g.AddressVersion,
		IpVersionAffinityMode: g.Affinity, AnyPortEnabled: g.AnyPort, ConnectionDrainEnabled: g.ConnectionDrain,
		PreserveClientIpEnabled: g.PreserveClientIP, ConnectionDrainTimeout: g.ConnectionDrainTimeout, ServerCount: len(g.LiveServers(c.Now)),
		HealthCheck: healthCheckView{
			h.Enabled, h.Type, h.ConnectPort, h.ConnectTimeout, h.Interval, h.Healthy, h.Unhealthy, h.Domain, h.URL, h.Method,
			append([]string{}, h.Codes...), h.Version, h.Request, h.Expect,
		},
		RelatedLoadBalancerIds: []string{}, Tags: tagViews(g.Tags),
	}
	for _, l := range s.NLBListenersTo(g.ID, c.Now) {
		if !slices.Contains(v.RelatedLoadBalancerIds, l.LoadBalancerID) {
			v.RelatedLoadBalancerIds = append(v.RelatedLoadBalancerIds, l.LoadBalancerID)
		}
	}
	return v
}

func (s service) listGroups(c *api.Call) (any, error) {
	having := cloud.HavingAll
	if s.NLBGroupTagsAny {
		having = cloud.HavingAny
	}
	tags := cloud.TagsIn(c)
	if len(tags) > 1 {
		c.Holds("nlb.group-tags-all")
	}
	wanted := having(tags)
	all := s.NLBGroups.Select(func(g *cloud.NLBGroup) bool {
		return g.Phase.At(c.Now) != "" && c.Sees(g.Created) && passes(c.List("ServerGroupIds"), g.ID) &&
			passes(c.List("ServerGroupNames"), g.Name) &&
			c.Or("VpcId", g.VPCID) == g.VPCID && c.Or("ServerGroupType", g.Type) == g.Type &&
			c.Or("ResourceGroupId", g.ResourceGroupID) == g.ResourceGroupID &&
			cloud.Searched(c, g.Object, g.Tagged, wanted)
	})
	return listed(c, "ServerGroups", all, func(g *cloud.NLBGroup) groupView { return s.groupView(c, g) })
}

// isPublic reports whether an address is none that a VPC can reach.
func isPublic(ip netip.Addr) bool {
	return !ip.IsPrivate() && !netip.MustParsePrefix("100.64.0.0/10").Contains(ip)
}
