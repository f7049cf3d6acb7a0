package nlb

import (
	"encoding/json"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Protocols of listeners. TCP and TCPSSL are one transport: they cannot share a port.
const (
	tcp    = "TCP"
	udp    = "UDP"
	tcpSSL = "TCPSSL"
)

const (
	maxIdle    = 900
	maxIdleUDP = 20
	minIdle    = 10
)

// defaultPolicy is the security policy of a TCPSSL listener that names none.
const defaultPolicy = "tls_cipher_policy_1_0"

// checkPorts checks the ports of a new listener against those of the others of its instance.
func (s service) checkPorts(c *api.Call, l *cloud.NLBListener) *api.Error {
	if l.Port == 0 && (l.Start == 0 || l.End <= l.Start) {
		return illegal("Port", "a range needs StartPort below EndPort")
	}
	if l.Port == 0 && l.Protocol == tcpSSL && c.Holds("nlb.one-port-over-tls") && !s.NLBRangesOverTLS {
		return illegal("Port", "a TCPSSL listener has one port")
	}
	others := s.NLBListenersOf(l.LoadBalancerID, c.Now)
	if len(others) >= s.Limits.ListenersPerNLB {
		return quota("nlb_quota_listeners_num", s.Limits.ListenersPerNLB)
	}
	for _, other := range others {
		if bad := clash(l, other); bad != nil {
			return bad
		}
	}
	return nil
}

// clash reports that two listeners of an instance want the same port.
func clash(l, other *cloud.NLBListener) *api.Error {
	first, last := l.Ports()
	from, to := other.Ports()
	switch {
	case other.Transport() != l.Transport() || last < from || to < first:
		return nil
	case other.Port == l.Port && other.Protocol == l.Protocol && l.Port != 0:
		return api.BadRequest("DuplicatedParam.listener", "The listener %d of %s exists.", l.Port, l.Protocol)
	}
	return api.BadRequest("Conflict.Port", "The port conflicts with the listener %s.", other.ID)
}

// checkListener holds a listener to the rules of its protocol, and its group to those of the listener.
func (s service) checkListener(c *api.Call, l *cloud.NLBListener) *api.Error {
	if l.Protocol == udp && c.Has("IdleTimeout") && (l.IdleTimeout < minIdle || l.IdleTimeout > maxIdleUDP) {
		return illegal("IdleTimeout", "a UDP listener takes %d to %d seconds", minIdle, maxIdleUDP)
	}
	if l.Protocol != udp && c.Has("IdleTimeout") && l.IdleTimeout < minIdle {
		return illegal("IdleTimeout", "a listener takes %d to %d seconds", minIdle, maxIdle)
	}
	if l.ProxyProtocolV2 != "" && !json.Valid([]byte(l.ProxyProtocolV2)) {
		return illegal("ProxyProtocolV2Config", "not a JSON object")
	}
	if bad := s.checkTLS(l); bad != nil {
		return bad
	}
	return s.checkGroupOf(c, l)
}

// checkTLS checks what only TCPSSL listeners have.
func (s service) checkTLS(l *cloud.NLBListener) *api.Error {
	if l.Protocol != tcpSSL {
		return nil
	}
	switch {
	case len(l.Certificates) == 0:
		return api.BadRequest("MissingParam.Certificate", "A TCPSSL listener needs a certificate.")
	case len(l.Certificates) > 1:
		return api.BadRequest("IllegalParamSize.certificateIds", "A TCPSSL listener takes one certificate.")
	case l.CAEnabled && len(l.CAs) == 0:
		return api.BadRequest("MissingParam.CaCertificate", "Mutual authentication needs the certificate of an authority.")
	case l.ALPNEnabled && l.ALPNPolicy == "":
		return api.BadRequest("MissingParam.AlpnPolicy", "ALPN needs a policy.")
	}
	if _, ok := s.Certificates.Get(l.Certificates[0]); !ok {
		return notFound("Certificate", l.Certificates[0])
	}
	for _, id := range l.CAs {
		if ca, ok := s.Certificates.Get(id); !ok || !ca.CA {
			return notFound("CaCertificate", id)
		}
	}
	return s.checkPolicy(l.SecurityPolicy)
}

func (s service) checkPolicy(id string) *api.Error {
	switch id {
	case defaultPolicy, "tls_cipher_policy_1_1", "tls_cipher_policy_1_2", "tls_cipher_policy_1_2_strict",
		"tls_cipher_policy_1_2_strict_with_1_3":
		return nil
	}
	if slices.Contains(s.SecurityPolicies, id) {
		return nil
	}
	return notFound("securitypolicy", id)
}

// checkGroupOf checks that a listener can send to its group.
func (s service) checkGroupOf(c *api.Call, l *cloud.NLBListener) *api.Error {
	g, ok := s.NLBGroups.Get(l.GroupID)
	if !ok || g.Phase.At(c.Now) == "" {
		return notFound("serverGroup", l.GroupID)
	}
	lb, _ := s.NLBs.Get(l.LoadBalancerID)
	if g.VPCID != lb.VPCID {
		return api.BadRequest("Mismatch.VpcId", "The server group %s is not in the VPC %s.", g.ID, lb.VPCID)
	}
	if bad := fits(l, g); bad != nil {
		return bad
	}
	users := 0
	for _, user := range s.NLBListenersTo(g.ID, c.Now) {
		if user.ID != l.ID {
			users++
		}
	}
	switch {
	case users >= s.Limits.ListenersPerGroup:
		return quota("nlb_quota_servergroup_attached_num", s.Limits.ListenersPerGroup)
	case s.behind(lb, g.ID, c) > s.Limits.ServersPerNLB:
		return quota("nlb_quota_loadbalancer_noeci_servers_num", s.Limits.ServersPerNLB)
	}
	return nil
}

// fits reports why a group of this kind cannot serve the listener.
func fits(l *cloud.NLBListener, g *cloud.NLBGroup) *api.Error {
	switch {
	case !carries(g.Protocol, l.Protocol):
		return api.BadRequest("Mismatch.Protocol", "A listener of %s cannot send to a group of %s.", l.Protocol, g.Protocol)
	case l.Port == 0 && !g.AnyPort:
		return api.BadRequest("IllegalParam.AnyPortListenerConflictWithNonAnyPortServerGroup",
			"A listener on a range of ports needs a group for any port.")
	case l.Port != 0 && g.AnyPort:
		return api.BadRequest("IllegalParam.NonAnyPortListenerConflictWithAnyPortServerGroup", "A listener on one port needs a group with ports.")
	case l.Protocol == tcpSSL && g.PreserveClientIP:
		return api.BadRequest("IllegalParam.PreserveClientIpSwitch", "A TCPSSL listener cannot preserve the addresses of clients.")
	}
	return nil
}

// behind counts the backend servers of an instance if it also had a group.
func (s service) behind(lb *cloud.NLB, groupID string, c *api.Call) int {
	n := s.counted(c, lb.ID)
	for _, l := range s.NLBListenersOf(lb.ID, c.Now) {
		if l.GroupID == groupID {
			return n
		}
	}
	g, _ := s.NLBGroups.Get(groupID)
	return n + len(g.LiveServers(c.Now))
}

// carries reports whether a group's protocol fits a listener's.
func carries(group, listener string) bool {
	switch group {
	case "TCP_UDP":
		return listener != tcpSSL
	case tcp:
		return listener != udp
	}
	return group == listener
}
