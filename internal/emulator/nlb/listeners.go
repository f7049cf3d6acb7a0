package nlb

import (
	"encoding/json"
	"strconv"

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

// listenerSettings are the parameters that creation and update share.
func listenerSettings() []api.Param {
	return []api.Param{
		api.Str("ListenerDescription", api.Len(2, 256)), api.Num("IdleTimeout", 1, maxIdle), api.Str("SecurityPolicyId"),
		api.ListOf("CertificateIds", 0), api.ListOf("CaCertificateIds", 0), api.Flag("CaEnabled"), api.Flag("AlpnEnabled"),
		api.Str("AlpnPolicy", api.OneOf("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred")), api.Num("Cps", 0, 1_000_000),
		api.Flag("ProxyProtocolEnabled"), api.Str("ProxyProtocolV2Config"), api.Num("Mss", 0, 1500), api.Flag("SecSensorEnabled"),
	}
}

func (s service) listenerActions() []api.Action {
	create := append(listenerSettings(),
		lbID(), api.Num("ListenerPort", 0, 65535, api.Required), api.Str("ListenerProtocol", api.Required, api.OneOf(tcp, udp, tcpSSL)),
		groupID(), api.Num("StartPort", 1, 65535), api.Num("EndPort", 1, 65535), tagParams(maxTags))
	return []api.Action{
		{Name: "CreateListener", Kind: api.Write, Params: write(create...), Run: s.createListener},
		{Name: "GetListenerAttribute", Kind: api.Read, Params: []api.Param{listenerID()}, Run: s.getListener},
		{Name: "ListListeners", Kind: api.Read, Params: list(
			api.ListOf("LoadBalancerIds", 20), api.ListOf("ListenerIds", 20), api.Str("ListenerProtocol", api.OneOf(tcp, udp, tcpSSL)), tagParams(20),
		), Run: s.listListeners},
		{Name: "UpdateListenerAttribute", Kind: api.Write, Params: write(append(listenerSettings(), listenerID(), api.Str("ServerGroupId"))...), Run: s.updateListener},
		{Name: "DeleteListener", Kind: api.Write, Params: write(listenerID()), Run: s.deleteListener},
		{Name: "StartListener", Kind: api.Write, Params: write(listenerID()), Run: s.startListener},
		{Name: "StopListener", Kind: api.Write, Params: write(listenerID()), Run: s.stopListener},
		{Name: "GetListenerHealthStatus", Kind: api.Read, Params: list(listenerID()), Run: s.listenerHealth},
	}
}

func (s service) createListener(c *api.Call) (any, error) {
	return s.once(c, func() (any, error) {
		lb, err := s.writable(c, c.Str("LoadBalancerId"))
		if err != nil {
			return nil, err
		}
		l := &cloud.NLBListener{
			LoadBalancerID: lb.ID, Port: c.Int("ListenerPort", 0), Start: c.Int("StartPort", 0), End: c.Int("EndPort", 0),
			Protocol: c.Str("ListenerProtocol"), GroupID: c.Str("ServerGroupId"), IdleTimeout: maxIdle,
		}
		switch l.Protocol {
		case udp:
			l.IdleTimeout = maxIdleUDP
		case tcpSSL:
			l.SecurityPolicy = defaultPolicy
		}
		l.Tags = tagsOf(c)
		s.set(c, l)
		if bad := s.checkPorts(c, l); bad != nil {
			return nil, bad
		}
		if bad := s.checkListener(c, l); bad != nil {
			return nil, bad
		}
		return checked(c, func() (any, error) {
			l.Object = s.NewObject("lsn")
			l.Phase = s.transition(c, cloud.NLBProvisioning, cloud.Running, "")
			s.NLBListeners.Add(l)
			job, err := s.configuring(c, lb)
			return struct {
				jobAnswer
				ListenerId string //nolint:revive // name on the wire
			}{job.(jobAnswer), l.ID}, err //nolint:forcetypeassert // configuring answers with nothing else
		})
	})
}

// set takes over what the call says about a listener; what it does not name stays.
func (s service) set(c *api.Call, l *cloud.NLBListener) {
	l.Description = c.Or("ListenerDescription", l.Description)
	l.GroupID = c.Or("ServerGroupId", l.GroupID)
	l.IdleTimeout, l.Cps, l.Mss = c.Int("IdleTimeout", l.IdleTimeout), c.Int("Cps", l.Cps), c.Int("Mss", l.Mss)
	l.SecurityPolicy = c.Or("SecurityPolicyId", l.SecurityPolicy)
	if ids := c.List("CertificateIds"); len(ids) > 0 {
		l.Certificates = ids
	}
	if ids := c.List("CaCertificateIds"); len(ids) > 0 {
		l.CAs = ids
	}
	l.CAEnabled = c.Bool("CaEnabled", l.CAEnabled)
	l.ALPNEnabled, l.ALPNPolicy = c.Bool("AlpnEnabled", l.ALPNEnabled), c.Or("AlpnPolicy", l.ALPNPolicy)
	l.ProxyProtocol, l.ProxyProtocolV2 = c.Bool("ProxyProtocolEnabled", l.ProxyProtocol), c.Or("ProxyProtocolV2Config", l.ProxyProtocolV2)
	l.SecSensor = c.Bool("SecSensorEnabled", l.SecSensor)
}

// checkPorts checks the ports of a new listener against those of the others of its instance.
func (s service) checkPorts(c *api.Call, l *cloud.NLBListener) *api.Error {
	if l.Port == 0 && (l.Start == 0 || l.End <= l.Start) {
		return illegal("Port", "a range needs StartPort below EndPort")
	}
	if l.Port == 0 && l.Protocol == tcpSSL && !s.NLBRangesOverTLS {
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
	case defaultPolicy, "tls_cipher_policy_1_1", "tls_cipher_policy_1_2", "tls_cipher_policy_1_2_strict", "tls_cipher_policy_1_2_strict_with_1_3":
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
		return api.BadRequest("IllegalParam.AnyPortListenerConflictWithNonAnyPortServerGroup", "A listener on a range of ports needs a group for any port.")
	case l.Port != 0 && g.AnyPort:
		return api.BadRequest("IllegalParam.NonAnyPortListenerConflictWithAnyPortServerGroup", "A listener on one port needs a group with ports.")
	case l.Protocol == tcpSSL && g.PreserveClientIP:
		return api.BadRequest("IllegalParam.PreserveClientIpSwitch", "A TCPSSL listener cannot preserve the addresses of clients.")
	}
	return nil
}

// behind counts the backend servers of an instance if it also had a group.
func (s service) behind(lb *cloud.NLB, groupID string, c *api.Call) int {
	n := s.NLBServersOf(lb.ID, c.Now)
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

// listener finds the listener of a call that changes it, and its instance.
func (s service) writableListener(c *api.Call) (*cloud.NLBListener, *cloud.NLB, error) {
	l, err := s.findListener(c)
	if err != nil {
		return nil, nil, err
	}
	lb, err := s.writable(c, l.LoadBalancerID)
	if err != nil {
		return nil, nil, err
	}
	if status := l.Phase.At(c.Now); status != cloud.Running && status != cloud.Stopped {
		return nil, nil, api.BadRequest("IncorrectStatus.listener", "The status of %s is %s.", l.ID, status)
	}
	return l, lb, nil
}

func (s service) findListener(c *api.Call) (*cloud.NLBListener, error) {
	l, ok := s.NLBListeners.Get(c.Str("ListenerId"))
	if !ok || l.Phase.At(c.Now) == "" || !c.Finds(l.Created) {
		return nil, notFound("listener", c.Str("ListenerId"))
	}
	return l, nil
}

func (s service) updateListener(c *api.Call) (any, error) {
	return s.once(c, func() (any, error) {
		l, lb, err := s.writableListener(c)
		if err != nil {
			return nil, err
		}
		updated := *l
		s.set(c, &updated)
		if bad := s.checkListener(c, &updated); bad != nil {
			return nil, bad
		}
		return checked(c, func() (any, error) {
			before := l.Phase.At(c.Now)
			if applies(c) {
				*l = updated
			}
			l.Phase = s.transition(c, cloud.NLBConfiguring, before, before)
			return s.configuring(c, lb)
		})
	})
}

// moving is the frame of the writes that take a listener to another state.
func (s service) moving(c *api.Call, from, during, to string) (any, error) {
	l, lb, err := s.writableListener(c)
	if err != nil {
		return nil, err
	}
	before := l.Phase.At(c.Now)
	if from != "" && before != from {
		return nil, api.BadRequest("IncorrectStatus.listener", "The status of %s is %s.", l.ID, before)
	}
	return checked(c, func() (any, error) {
		l.Phase = s.transition(c, during, to, before)
		answer, err := s.configuring(c, lb)
		s.Reap(c.Now)
		return answer, err
	})
}

func (s service) deleteListener(c *api.Call) (any, error) {
	return s.moving(c, "", cloud.Deleting, "")
}

func (s service) startListener(c *api.Call) (any, error) {
	return s.moving(c, cloud.Stopped, cloud.Starting, cloud.Running)
}

func (s service) stopListener(c *api.Call) (any, error) {
	return s.moving(c, cloud.Running, cloud.NLBStopping, cloud.Stopped)
}

type listenerView struct { //nolint:revive // names on the wire
	ListenerId, LoadBalancerId, ListenerProtocol, ListenerDescription string
	ListenerStatus, RegionId, ServerGroupId                           string
	ListenerPort                                                      int
	StartPort, EndPort                                                string // text, and "" for a listener on one port
	IdleTimeout, Cps, Mss                                             int
	CertificateIds, CaCertificateIds                                  []string
	CaEnabled, AlpnEnabled, ProxyProtocolEnabled, SecSensorEnabled    bool
	AlpnPolicy, SecurityPolicyId                                      string
	ProxyProtocolV2Config                                             json.RawMessage
	Tags                                                              []tag
}

func (s service) listenerView(c *api.Call, l *cloud.NLBListener) listenerView {
	v := listenerView{
		ListenerId: l.ID, LoadBalancerId: l.LoadBalancerID, ListenerProtocol: l.Protocol, ListenerDescription: l.Description,
		ListenerStatus: l.Phase.At(c.Now), RegionId: s.Region, ServerGroupId: l.GroupID, ListenerPort: l.Port,
		IdleTimeout: l.IdleTimeout, Cps: l.Cps, Mss: l.Mss, CertificateIds: append([]string{}, l.Certificates...),
		CaCertificateIds: append([]string{}, l.CAs...), CaEnabled: l.CAEnabled, AlpnEnabled: l.ALPNEnabled, ProxyProtocolEnabled: l.ProxyProtocol,
		SecSensorEnabled: l.SecSensor, AlpnPolicy: l.ALPNPolicy, SecurityPolicyId: l.SecurityPolicy,
		ProxyProtocolV2Config: json.RawMessage(`{"Ppv2PrivateLinkEpIdEnabled":false,"Ppv2PrivateLinkEpsIdEnabled":false,"Ppv2VpcIdEnabled":false}`),
		Tags:                  tagViews(l.Tags),
	}
	if l.ProxyProtocolV2 != "" {
		v.ProxyProtocolV2Config = json.RawMessage(l.ProxyProtocolV2)
	}
	if l.Port == 0 {
		v.StartPort, v.EndPort = strconv.Itoa(l.Start), strconv.Itoa(l.End)
	}
	return v
}

func (s service) getListener(c *api.Call) (any, error) {
	l, err := s.findListener(c)
	if err != nil {
		return nil, err
	}
	return s.listenerView(c, l), nil
}

func (s service) listListeners(c *api.Call) (any, error) {
	tags := tagsOf(c)
	all := s.NLBListeners.Select(func(l *cloud.NLBListener) bool {
		return l.Phase.At(c.Now) != "" && c.Sees(l.Created) && passes(c.List("LoadBalancerIds"), l.LoadBalancerID) &&
			passes(c.List("ListenerIds"), l.ID) && c.Or("ListenerProtocol", l.Protocol) == l.Protocol && searched(c, l.Object, l.Tagged).Match(tags)
	})
	items, next, err := page(c, all)
	if err != nil {
		return nil, err
	}
	views := make([]listenerView, 0, len(items))
	for _, l := range items {
		views = append(views, s.listenerView(c, l))
	}
	return struct {
		Listeners              []listenerView
		NextToken              string
		TotalCount, MaxResults int
	}{views, next, len(all), c.Int("MaxResults", defaultPage)}, nil
}

type (
	unhealthyView struct { //nolint:revive // names on the wire
		ServerId, ServerIp, Status string
		Port                       int
		Reason                     struct{ ReasonCode string }
	}
	groupHealthView struct { //nolint:revive // names on the wire; the misspelled one is the API's own
		ServerGroupId     string
		HeathCheckEnabled bool
		NonNormalServers  []unhealthyView
		ActionType        string
	}
	listenerHealthView struct { //nolint:revive // names on the wire
		ListenerId, ListenerProtocol string
		ListenerPort                 int
		ServerGroupInfos             []groupHealthView
	}
)

// listenerHealth shows no server that answers; without a network all do.
func (s service) listenerHealth(c *api.Call) (any, error) {
	l, err := s.findListener(c)
	if err != nil {
		return nil, err
	}
	health := groupHealthView{ServerGroupId: l.GroupID, NonNormalServers: []unhealthyView{}, ActionType: "Forward"}
	if g, ok := s.NLBGroups.Get(l.GroupID); ok {
		health.HeathCheckEnabled = g.HealthCheck.Enabled
	}
	return struct {
		ListenerHealthStatus []listenerHealthView
		NextToken            string
		TotalCount           int
	}{[]listenerHealthView{{l.ID, l.Protocol, l.Port, []groupHealthView{health}}}, "", 1}, nil
}
