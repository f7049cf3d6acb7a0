package nlb

import (
	"encoding/json"
	"strconv"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

type listenerView struct { //nolint:revive // names on the wire
	ListenerId, LoadBalancerId, ListenerProtocol, ListenerDescription string
	ListenerStatus, RegionId, ServerGroupId                           string
	ListenerPort                                                      int
	// Text, and absent for a listener on one port, where "" is no number.
	StartPort                                                      string `json:",omitempty"`
	EndPort                                                        string `json:",omitempty"`
	IdleTimeout, Cps, Mss                                          int
	CertificateIds, CaCertificateIds                               []string
	CaEnabled, AlpnEnabled, ProxyProtocolEnabled, SecSensorEnabled bool
	AlpnPolicy, SecurityPolicyId                                   string
	ProxyProtocolV2Config                                          json.RawMessage
	Tags                                                           []tag
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
	wanted := cloud.HavingAll(cloud.TagsIn(c))
	all := s.NLBListeners.Select(func(l *cloud.NLBListener) bool {
		return l.Phase.At(c.Now) != "" && c.Sees(l.Created) && passes(c.List("LoadBalancerIds"), l.LoadBalancerID) &&
			passes(c.List("ListenerIds"), l.ID) && c.Or("ListenerProtocol", l.Protocol) == l.Protocol &&
			cloud.Searched(c, l.Object, l.Tagged, wanted)
	})
	return listed(c, "Listeners", all, func(l *cloud.NLBListener) listenerView { return s.listenerView(c, l) })
}
