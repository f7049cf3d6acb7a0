package alicloud

import (
	"context"
	"fmt"
)

// Types of server groups of NLB: of instances, network interfaces and container instances, or of addresses.
const (
	NLBInstanceGroup = "Instance"
	NLBIPGroup       = "Ip"
)

// Affinities of a server group of both IP versions.
const (
	NLBAffinity    = "Affinity"
	NLBNonAffinity = "NonAffinity"
)

// Statuses of a server group of NLB. Any other status than available refuses writes.
const (
	NLBGroupAvailable = "Available"
	NLBGroupDeleting  = "Deleting"
)

// NLBGroup is a server group of NLB. It belongs to the account and not to a load balancer.
type NLBGroup struct {
	ID   string
	Name string
	// Type is [NLBInstanceGroup] or [NLBIPGroup].
	Type string
	// Protocol is one of a listener, or TCP_UDP.
	Protocol string
	VPCID    string
	// AddressIPVersion is [NLBIPv4] or [NLBDualStack]; Affinity counts with the latter only.
	AddressIPVersion string
	Affinity         string
	// AnyPort is for listeners on ranges of ports: a backend server gets traffic on the port that the client chose.
	AnyPort         bool
	ResourceGroupID string
	Status          string
	// ServerCount is how many backend servers the group has.
	ServerCount int
	// LoadBalancers are the ids of those that send to the group.
	LoadBalancers []string
	Tags          []Tag
	NLBGroupSettings
}

// Tag returns the value of the tag, and whether the group has it.
func (g *NLBGroup) Tag(key string) (string, bool) { return tagIn(g.Tags, key) }

// NLBGroupSettings are what a write sets of a server group; nil leaves a setting as it is. What was read has none that is nil but
// lists.
type NLBGroupSettings struct {
	// Scheduler is Wrr, Wlc, rr, sch, tch or qch.
	Scheduler       *string
	ConnectionDrain *bool
	// DrainTimeout is in seconds, 0 to 900.
	DrainTimeout     *int
	PreserveClientIP *bool
	HealthCheck      NLBHealthCheck
}

// NLBHealthCheck is how a server group checks its backend servers. Times are in seconds.
type NLBHealthCheck struct {
	Enabled *bool
	// Type is TCP, HTTP or UDP.
	Type *string
	// ConnectPort is 0 for the port of the backend server.
	ConnectPort *int
	// ConnectTimeout is 1 to 300, Interval 1 to 50 and for UDP 1 to 300.
	ConnectTimeout, Interval *int
	// Healthy and Unhealthy are 2 to 10.
	Healthy, Unhealthy *int
	// The others are of HTTP checks.
	Domain, URL, Method *string
	// Version is HTTP1.0 or HTTP1.1.
	Version *string
	Codes   []string
}

// NLBGroupQuery selects server groups.
type NLBGroupQuery struct {
	IDs   []string // at most [MaxNLBQuery]
	Names []string // at most [MaxNLBQuery]
	// Tag selects by one tag: it is not documented how several combine.
	Tag *Tag
}

// ListNLBGroups returns the server groups that match, tags included and without their backend servers.
func (c *Client) ListNLBGroups(ctx context.Context, query NLBGroupQuery) ([]NLBGroup, error) {
	if max(len(query.IDs), len(query.Names)) > MaxNLBQuery {
		return nil, fmt.Errorf("query of %d server groups by id and %d by name: the API takes at most %d", len(query.IDs), len(query.Names),
			MaxNLBQuery)
	}
	in := params{}.setInt("MaxResults", nlbPageSize).setList("ServerGroupIds", query.IDs).setList("ServerGroupNames", query.Names)
	if query.Tag != nil {
		in.setTags([]Tag{*query.Tag})
	}
	found, err := tokenPages("ListServerGroups", in, func(g wireNLBGroup) string {
		return g.ServerGroupId
	}, func() (tokenPage[wireNLBGroup], error) {
		out := &struct {
			answer
			tokens
			ServerGroups []wireNLBGroup
		}{answer: newAnswer()}
		err := c.call(ctx, "ListServerGroups", productNLB, in, out)
		return tokenPage[wireNLBGroup]{out.answer, out.tokens, out.ServerGroups}, err
	})
	if err != nil {
		return nil, err
	}
	groups := make([]NLBGroup, 0, len(found))
	for i := range found {
		groups = append(groups, found[i].group())
	}
	return groups, notAmong("ListServerGroups", query.IDs, groups, func(g NLBGroup) string { return g.ID })
}

type wireNLBGroup struct {
	ServerGroupId, ServerGroupName, ServerGroupType, ServerGroupStatus string
	VpcId, ResourceGroupId, Protocol, Scheduler                        string
	AddressIPVersion, IpVersionAffinityMode                            string
	AnyPortEnabled, ConnectionDrainEnabled, PreserveClientIpEnabled    bool
	ConnectionDrainTimeout, ServerCount                                int
	HealthCheck                                                        wireNLBHealthCheck
	RelatedLoadBalancerIds                                             []string
	Tags                                                               []wireNLBTag
}

type wireNLBHealthCheck struct {
	HealthCheckEnabled                                 bool
	HealthCheckType                                    string
	HealthCheckConnectPort, HealthCheckConnectTimeout  int
	HealthCheckInterval                                int
	HealthyThreshold, UnhealthyThreshold               int
	HealthCheckDomain, HealthCheckUrl, HttpCheckMethod string
	HealthCheckHttpCode                                []string
	HealthCheckHttpVersion                             string
}

func (w *wireNLBGroup) group() NLBGroup {
	h := &w.HealthCheck
	return NLBGroup{
		ID: w.ServerGroupId, Name: w.ServerGroupName, Type: w.ServerGroupType, Protocol: w.Protocol, VPCID: w.VpcId,
		AddressIPVersion: w.AddressIPVersion, Affinity: w.IpVersionAffinityMode, AnyPort: w.AnyPortEnabled, ResourceGroupID: w.ResourceGroupId,
		Status: w.ServerGroupStatus, ServerCount: w.ServerCount, LoadBalancers: w.RelatedLoadBalancerIds, Tags: tagsOfNLB(w.Tags),
		NLBGroupSettings: NLBGroupSettings{
			Scheduler: &w.Scheduler, ConnectionDrain: &w.ConnectionDrainEnabled, DrainTimeout: &w.ConnectionDrainTimeout,
			PreserveClientIP: &w.PreserveClientIpEnabled,
			HealthCheck: NLBHealthCheck{
				Enabled: &h.HealthCheckEnabled, Type: &h.HealthCheckType, ConnectPort: &h.HealthCheckConnectPort,
				ConnectTimeout: &h.HealthCheckConnectTimeout, Interval: &h.HealthCheckInterval, Healthy: &h.HealthyThreshold,
				Unhealthy: &h.UnhealthyThreshold, Domain: &h.HealthCheckDomain, URL: &h.HealthCheckUrl, Method: &h.HttpCheckMethod,
				Version: &h.HealthCheckHttpVersion, Codes: h.HealthCheckHttpCode,
			},
		},
	}
}

func (s *NLBGroupSettings) params(in params) params {
	const check = "HealthCheckConfig."
	h := &s.HealthCheck
	return in.setText("Scheduler", s.Scheduler).setBool("ConnectionDrainEnabled", s.ConnectionDrain).
		setNumber("ConnectionDrainTimeout", s.DrainTimeout).setBool("PreserveClientIpEnabled", s.PreserveClientIP).
		setBool(check+"HealthCheckEnabled", h.Enabled).setText(check+"HealthCheckType", h.Type).
		setNumber(check+"HealthCheckConnectPort", h.ConnectPort).setNumber(check+"HealthCheckConnectTimeout", h.ConnectTimeout).
		setNumber(check+"HealthCheckInterval", h.Interval).setNumber(check+"HealthyThreshold", h.Healthy).
		setNumber(check+"UnhealthyThreshold", h.Unhealthy).setText(check+"HealthCheckDomain", h.Domain).
		setText(check+"HealthCheckUrl", h.URL).setText(check+"HttpCheckMethod", h.Method).
		setText(check+"HealthCheckHttpVersion", h.Version).setList(check+"HealthCheckHttpCode", h.Codes)
}

// CreateNLBGroup begins to make a server group. For the token see [Client.CreateNLB].
func (c *Client) CreateNLBGroup(ctx context.Context, g NLBGroup, token string) (id string, job Job, err error) {
	in := params{"ClientToken": token, "ServerGroupName": g.Name, "VpcId": g.VPCID}.
		set("ServerGroupType", g.Type).set("Protocol", g.Protocol).set("AddressIPVersion", g.AddressIPVersion).
		set("IpVersionAffinityMode", g.Affinity).set("ResourceGroupId", g.ResourceGroupID).setTags(g.Tags)
	if g.AnyPort {
		in.setBool("AnyPortEnabled", &g.AnyPort)
	}
	out, err := c.nlbBeginWrite(ctx, "CreateServerGroup", g.params(in))
	if err != nil {
		return "", "", err
	}
	if out.ServerGroupId == "" {
		return "", "", out.unusable("CreateServerGroup", "the answer has no ServerGroupId")
	}
	return out.ServerGroupId, Job(out.JobId), nil
}

// UpdateNLBGroup begins to change settings of a server group.
func (c *Client) UpdateNLBGroup(ctx context.Context, id string, settings NLBGroupSettings) (Job, error) {
	return c.nlbJobWrite(ctx, "UpdateServerGroupAttribute", settings.params(params{"ServerGroupId": id}))
}

// DeleteNLBGroup begins to remove a server group, which no listener may use.
func (c *Client) DeleteNLBGroup(ctx context.Context, id string) (Job, error) {
	return c.nlbJobWrite(ctx, "DeleteServerGroup", params{"ServerGroupId": id})
}
