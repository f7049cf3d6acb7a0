package nlb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// listenerSettings are the parameters that creation and update share.
func listenerSettings() []api.Param {
	return []api.Param{
		api.Str("ListenerDescription", api.Len(2, 256)), api.Num("IdleTimeout", 1, maxIdle), api.Str("SecurityPolicyId"),
		api.ListOf("CertificateIds", 0), api.ListOf("CaCertificateIds", 0), api.Flag("CaEnabled"), api.Flag("AlpnEnabled"),
		api.Str("AlpnPolicy", api.OneOfAnyCase("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred")), api.Num("Cps", 0, 1_000_000),
		api.Flag("ProxyProtocolEnabled"), api.Str("ProxyProtocolV2Config"), api.Num("Mss", 0, 1500), api.Flag("SecSensorEnabled"),
	}
}

func (s service) listenerActions() []api.Action {
	create := append(listenerSettings(),
		lbID(), api.Num("ListenerPort", 0, 65535, api.Required), api.Str("ListenerProtocol", api.Required, api.OneOfAnyCase(tcp, udp, tcpSSL)),
		groupID(), api.Num("StartPort", 1, 65535), api.Num("EndPort", 1, 65535), cloud.TagParams(cloud.MaxTags))
	return []api.Action{
		{Name: "CreateListener", Kind: api.Write, Params: write(create...), Run: s.createListener},
		{Name: "GetListenerAttribute", Kind: api.Read, Params: []api.Param{listenerID()}, Run: s.getListener},
		{Name: "ListListeners", Kind: api.Read, Params: list(
			api.ListOf("LoadBalancerIds", 20), api.ListOf("ListenerIds", 20), api.Str("ListenerProtocol", api.OneOfAnyCase(tcp, udp, tcpSSL)),
			cloud.TagParams(20),
		), Run: s.listListeners},
		{Name: "UpdateListenerAttribute", Kind: api.Write, Params: write(append(listenerSettings(), listenerID(), api.Str("ServerGroupId"))...),
			Run: s.updateListener},
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
		l.Tags = l.Tags.With(cloud.TagsIn(c))
		s.set(c, l)
		if bad := s.checkPorts(c, l); bad != nil {
			return nil, bad
		}
		if bad := s.checkListener(c, l); bad != nil {
			return nil, bad
		}
		return checked(c, func() (any, error) {
			l.Object = s.NewObject("lsn")
			end := cloud.Running
			if !c.Holds("nlb.listener-runs") {
				end = cloud.Stopped
			}
			l.Phase = s.transition(c, cloud.NLBProvisioning, end, "")
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
	l.ProxyProtocol, l.ProxyProtocolV2 = c.Bool("ProxyProtocolEnabled", l.ProxyProtocol), c.Or("ProxyProtocolV2Config", l.ProxyProtocolV2)
	l.SecSensor = c.Bool("SecSensorEnabled", l.SecSensor)
	if l.Protocol != tcpSSL {
		return // what follows acts on TLS only
	}
	l.SecurityPolicy = c.Or("SecurityPolicyId", l.SecurityPolicy)
	if ids := c.List("CertificateIds"); len(ids) > 0 {
		l.Certificates = ids
	}
	if ids := c.List("CaCertificateIds"); len(ids) > 0 {
		l.CAs = ids
	}
	l.CAEnabled = c.Bool("CaEnabled", l.CAEnabled)
	l.ALPNEnabled, l.ALPNPolicy = c.Bool("AlpnEnabled", l.ALPNEnabled), c.Or("AlpnPolicy", l.ALPNPolicy)
}

// writableListener finds the listener of a call that changes it, and its instance.
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
