package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) instanceActions() []api.Action {
	protection := api.Str("ModificationProtectionStatus", api.Required, api.OneOf("ConsoleProtection", "NonProtection"))
	return []api.Action{
		{Name: "CreateLoadBalancer", Kind: api.Write, Params: createParams(), Run: s.create},
		{Name: "DeleteLoadBalancer", Kind: api.Write, Params: []api.Param{lbID()}, Run: s.delete},
		{Name: "DescribeLoadBalancers", Kind: api.Read, Params: describeParams(), Run: s.describe},
		{Name: "DescribeLoadBalancerAttribute", Kind: api.Read, Params: []api.Param{lbID()}, Run: s.describeAttribute},
		{Name: "SetLoadBalancerName", Kind: api.Write, Params: []api.Param{lbID(), api.Str("LoadBalancerName", api.Required, api.Len(1, 80))},
			Run: s.setName},
		{Name: "SetLoadBalancerStatus", Kind: api.Write,
			Params: []api.Param{lbID(), api.Str("LoadBalancerStatus", api.Required, api.OneOf(cloud.Active, cloud.Inactive))}, Run: s.setStatus},
		{Name: "SetLoadBalancerDeleteProtection", Kind: api.Write, Params: []api.Param{lbID(), onOff("DeleteProtection", api.Required)},
			Run: s.setDeleteProtection},
		{Name: "SetLoadBalancerModificationProtection", Kind: api.Write,
			Params: []api.Param{lbID(), protection, api.Str("ModificationProtectionReason", api.Len(0, 80))}, Run: s.setModificationProtection},
		{Name: "ModifyLoadBalancerInternetSpec", Kind: api.Write, Params: internetSpecParams(), Run: s.modifyInternetSpec},
		{Name: "ModifyLoadBalancerInstanceSpec", Kind: api.Write,
			Params: []api.Param{lbID(), api.Str("LoadBalancerSpec", api.Required, api.OneOf(specs...)), api.Flag("AutoPay")},
			Run:    s.modifyInstanceSpec},
		{Name: "ModifyLoadBalancerInstanceChargeType", Kind: api.Write, Params: chargeTypeParams(), Run: s.modifyChargeType},
	}
}

// specs are the specifications that can be named.
var specs = []string{"slb.s1.small", "slb.s2.small", "slb.s2.medium", "slb.s3.small", "slb.s3.medium", "slb.s3.large", "slb.s4.large"}

func (s service) delete(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c)
	if err != nil {
		return nil, err
	}
	switch {
	case lb.DeleteProtection == "on":
		return nil, api.BadRequest("OperationDenied.DeleteProtectionIsOn", "The delete protection of %s is on.", lb.ID)
	case lb.PayType == payPrepaid:
		return nil, api.BadRequest("InvalidChargeType", "A subscription load balancer cannot be deleted before it expires.")
	}
	s.RemoveLoadBalancer(lb)
	return done()
}

func (s service) setName(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	lb.Name = c.Str("LoadBalancerName")
	return done()
}

func (s service) setStatus(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	lb.Status = c.Str("LoadBalancerStatus")
	return done()
}

func (s service) setDeleteProtection(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	lb.DeleteProtection = c.Str("DeleteProtection")
	return done()
}

func (s service) setModificationProtection(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	lb.ModificationProtection = c.Str("ModificationProtectionStatus")
	lb.ModificationProtectionReason = ""
	if lb.ModificationProtection == "ConsoleProtection" {
		lb.ModificationProtectionReason = c.Str("ModificationProtectionReason")
	}
	return done()
}

type orderAnswer struct{ OrderId int64 } //nolint:revive // names on the wire

func internetSpecParams() []api.Param {
	return []api.Param{
		lbID(), api.Str("InternetChargeType", api.OneOf(payByTraffic, payByBandwidth)),
		api.Num("Bandwidth", 1, maxBandwidth, api.Also(-1)), api.Flag("AutoPay"),
	}
}

func (s service) modifyInternetSpec(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	if lb.AddressType != "internet" {
		return nil, api.Invalid("LoadBalancerId", "an intranet load balancer has no internet specification")
	}
	if err := s.chargesTraffic(c, lb, c.Str("InternetChargeType")); err != nil {
		return nil, err
	}
	lb.InternetChargeType = lb.ChargeTypeAt(c.Now)
	switch t := c.Str("InternetChargeType"); t {
	case "":
	case lb.InternetChargeType:
		lb.PendingChargeType = "" // takes back a change of the same day
	default:
		// The change comes into force at the next midnight; the read side shows the old value until then.
		lb.PendingChargeType, lb.ChargeTypeFrom = t, nextMidnight(c.Now)
		if !c.Holds("slb.charge-type-at-midnight") {
			lb.InternetChargeType, lb.PendingChargeType = t, ""
		}
	}
	lb.Bandwidth = c.Int("Bandwidth", lb.Bandwidth)
	return orderAnswer{}, nil
}

// chargesTraffic refuses a charge type of the traffic that does not go with what the load balancer itself is paid by.
func (s service) chargesTraffic(c *api.Call, lb *cloud.LoadBalancer, by string) error {
	if lb.InstanceChargeType == payByCLCU && by == payByBandwidth && c.Holds("slb.usage-by-bandwidth") && s.UsageByTrafficOnly {
		return api.BadRequest("OperationDenied.PayByCLCU", "A pay-by-usage load balancer is charged by traffic.")
	}
	return nil
}

func (s service) modifyInstanceSpec(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	if lb.InstanceChargeType == payByCLCU {
		return nil, api.BadRequest("OperationDenied.PayByCLCU", "A pay-by-usage load balancer has no specification.")
	}
	lb.Spec = c.Str("LoadBalancerSpec")
	return orderAnswer{}, nil
}

func chargeTypeParams() []api.Param {
	return []api.Param{
		lbID(), api.Str("InstanceChargeType", api.Required, api.OneOf(payBySpec, payByCLCU)), api.Str("LoadBalancerSpec", api.OneOf(specs...)),
		api.Str("InternetChargeType", api.OneOf(payByTraffic, payByBandwidth)), api.Num("Bandwidth", 1, maxBandwidth, api.Also(-1)),
	}
}

// modifyChargeType goes one way only: from pay-by-specification to pay-by-usage.
func (s service) modifyChargeType(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	if c.Str("InstanceChargeType") != payByCLCU || lb.InstanceChargeType == payByCLCU {
		return nil, api.BadRequest("Operation.NotAllowed", "The charge type changes only from %s to %s.", payBySpec, payByCLCU)
	}
	lb.InstanceChargeType, lb.Spec, lb.InternetChargeType, lb.Bandwidth = payByCLCU, "", payByTraffic, maxBandwidth
	return done()
}
