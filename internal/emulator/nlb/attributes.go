package nlb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) attributeActions() []api.Action {
	return []api.Action{
		{Name: "UpdateLoadBalancerAttribute", Kind: api.Write, Params: write(
			lbID(), api.Str("LoadBalancerName", api.Len(2, 128)), api.Flag("CrossZoneEnabled"), api.Num("Cps", 0, 1_000_000),
		), Run: s.changing(s.updateAttribute)},
		{Name: "UpdateLoadBalancerProtection", Kind: api.Write, Params: write(
			lbID(), api.Flag("DeletionProtectionEnabled"), api.Str("DeletionProtectionReason", api.Len(2, 128)),
			api.Str("ModificationProtectionStatus", api.OneOfAnyCase(consoleProtection, nonProtection)),
			api.Str("ModificationProtectionReason", api.Len(2, 128)),
		), Run: s.updateProtection},
		{Name: "EnableLoadBalancerIpv6Internet", Kind: api.Write, Params: write(lbID()), Run: s.ipv6Internet(internet)},
		{Name: "DisableLoadBalancerIpv6Internet", Kind: api.Write, Params: write(lbID()), Run: s.ipv6Internet(intranet)},
	}
}

// change changes an instance, or checks only, as apply says; see [service.changing].
type change func(c *api.Call, lb *cloud.NLB, apply bool) *api.Error

// changing is the frame of the writes on an instance that a job carries out: the instance must be active, and is configured afterwards.
func (s service) changing(f change) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		return s.once(c, func() (any, error) {
			lb, err := s.writable(c, c.Str("LoadBalancerId"))
			if err != nil {
				return nil, err
			}
			if bad := f(c, lb, false); bad != nil {
				return nil, bad
			}
			return checked(c, func() (any, error) {
				if applies(c) {
					if bad := f(c, lb, true); bad != nil {
						return nil, bad
					}
				}
				return s.configuring(c, lb)
			})
		})
	}
}

func (s service) updateAttribute(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	if bad := checkNames(c, "LoadBalancerName"); bad != nil {
		return bad
	}
	if apply {
		lb.Name = c.Or("LoadBalancerName", lb.Name)
		lb.CrossZone = c.Bool("CrossZoneEnabled", lb.CrossZone)
		lb.Cps = c.Int("Cps", lb.Cps)
	}
	return nil
}

// updateProtection takes effect at once, whatever the instance does.
func (s service) updateProtection(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c, c.Str("LoadBalancerId"))
	if err != nil {
		return nil, err
	}
	return checked(c, func() (any, error) {
		lb.DeletionProtection = c.Bool("DeletionProtectionEnabled", lb.DeletionProtection)
		lb.DeletionProtectionReason = c.Or("DeletionProtectionReason", lb.DeletionProtectionReason)
		lb.ModificationProtection = c.Or("ModificationProtectionStatus", lb.ModificationProtection)
		lb.ModificationProtected = c.Or("ModificationProtectionReason", lb.ModificationProtected)
		if !lb.DeletionProtection {
			lb.DeletionProtectionReason = ""
		}
		if lb.ModificationProtection == nonProtection {
			lb.ModificationProtected = ""
		}
		return done()
	})
}

func (s service) ipv6Internet(kind string) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		lb, err := s.writable(c, c.Str("LoadBalancerId"))
		if err != nil {
			return nil, err
		}
		if lb.AddressVersion != dualStack {
			return nil, api.BadRequest("OperationDenied.NonDualStackInstance", "The load balancer %s has no IPv6.", lb.ID)
		}
		return checked(c, func() (any, error) {
			lb.IPv6AddressType = kind
			return done()
		})
	}
}
