package alicloud

import (
	"context"
	"fmt"
	"net/netip"
)

// Types of backend servers of NLB.
const (
	NLBServerECS = "Ecs"
	NLBServerENI = "Eni"
	NLBServerECI = "Eci"
	NLBServerIP  = "Ip"
)

// Statuses of a backend server of NLB. One that is being added is not in its group yet, and one that is being removed may still be.
const (
	NLBServerAdding    = "Adding"
	NLBServerAvailable = "Available"
	NLBServerRemoving  = "Removing"
)

// Numbers of backend servers in one call: the API's page says 200, its older pages and the official CCM 40.
const (
	largeServerCall = 200
	smallServerCall = 40
)

// NLBServerKey identifies a backend server of NLB in its group.
type NLBServerKey struct {
	// ID is that of the instance or interface, or the address in a group of type [NLBIPGroup].
	ID   string
	IP   string
	Type string
	// Port is 0 in a group for any port.
	Port int
}

// NLBServer is a backend server of NLB.
type NLBServer struct {
	NLBServerKey
	// Weight is 0 to 100.
	Weight      int
	Description string
	Status      string
}

// ListNLBServers returns the backend servers of a group.
func (c *Client) ListNLBServers(ctx context.Context, group string) ([]NLBServer, error) {
	type wire struct {
		ServerGroupId, ServerId, ServerIp, ServerType, Status, Description string
		Port, Weight                                                       int
	}
	in := params{"ServerGroupId": group}.setInt("MaxResults", nlbPageSize)
	found, err := tokenPages("ListServerGroupServers", in, func(s wire) string {
		return fmt.Sprint(s.ServerId, " ", s.ServerIp, " ", s.Port)
	}, func() (tokenPage[wire], error) {
		out := &struct {
			answer
			tokens
			Servers []wire
		}{answer: newAnswer()}
		err := c.call(ctx, "ListServerGroupServers", productNLB, in, out)
		return tokenPage[wire]{out.answer, out.tokens, out.Servers}, err
	})
	if err != nil {
		return nil, err
	}
	servers := make([]NLBServer, 0, len(found))
	for _, s := range found {
		servers = append(servers,
			NLBServer{NLBServerKey{canonicalAddress(s.ServerId), canonicalAddress(s.ServerIp), s.ServerType, s.Port}, s.Weight, s.Description,
				s.Status})
	}
	return servers, notAmong("ListServerGroupServers", []string{group}, found, func(s wire) string { return s.ServerGroupId })
}

// canonicalAddress spells an address as Kubernetes does: one of IPv6 has several spellings, and another one would look like another server.
// Other text stays.
func canonicalAddress(text string) string {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.String()
	}
	return text
}

// ServersPerCall is how many backend servers of an NLB one call takes: 200, or 40 once the cloud refused the larger number.
func (c *Client) ServersPerCall() int {
	if c.smallServerCalls.Load() {
		return smallServerCall
	}
	return largeServerCall
}

// AddNLBServers begins to add backend servers to a group. One that does not exist, or is in the group already, fails the whole call.
func (c *Client) AddNLBServers(ctx context.Context, group string, servers []NLBServer) (Job, error) {
	return c.changeServers(len(servers), func() (Job, error) {
		return c.nlbJobWrite(ctx, "AddServersToServerGroup", params{"ServerGroupId": group}.setServers(servers, true))
	})
}

// UpdateNLBServers begins to change weights and descriptions of backend servers. One that is not in the group fails the whole call.
func (c *Client) UpdateNLBServers(ctx context.Context, group string, servers []NLBServer) (Job, error) {
	return c.changeServers(len(servers), func() (Job, error) {
		return c.nlbJobWrite(ctx, "UpdateServerGroupServersAttribute", params{"ServerGroupId": group}.setServers(servers, true))
	})
}

// RemoveNLBServers begins to remove backend servers from a group. One that is not in the group fails the whole call.
func (c *Client) RemoveNLBServers(ctx context.Context, group string, servers []NLBServer) (Job, error) {
	return c.changeServers(len(servers), func() (Job, error) {
		return c.nlbJobWrite(ctx, "RemoveServersFromServerGroup", params{"ServerGroupId": group}.setServers(servers, false))
	})
}

// tooManyServers are the codes assumed for a call with too many backend servers; no document names one.
var tooManyServers = []string{"IllegalParamSize.Servers", "IllegalParam.Servers"}

// changeServers notes that the cloud takes fewer backend servers in a call.
func (c *Client) changeServers(n int, write func() (Job, error)) (Job, error) {
	job, err := write()
	if n > smallServerCall && HasCode(err, tooManyServers...) {
		c.smallServerCalls.Store(true)
		observeSize(sizeServers, smallServerCall)
	}
	return job, err
}

// IsServersPerCall reports whether a call had more backend servers than the cloud takes. [Client.ServersPerCall] is smaller from
// then on, and the call may be repeated with fewer.
func IsServersPerCall(err error) bool { return HasCode(err, tooManyServers...) }

// setServers writes backend servers; settings are what can change of them.
func (p params) setServers(servers []NLBServer, settings bool) params {
	for i := range servers {
		s, at := &servers[i], fmt.Sprintf("Servers.%d.", i+1)
		p.set(at+"ServerId", s.ID).set(at+"ServerIp", s.IP).set(at+"ServerType", s.Type).setInt(at+"Port", s.Port)
		if settings {
			p.setInt(at+"Weight", s.Weight).set(at+"Description", s.Description)
		}
	}
	return p
}
