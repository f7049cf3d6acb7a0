package slb

import (
	"errors"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Values of the charge types.
const (
	payByTraffic   = "paybytraffic"
	payByBandwidth = "paybybandwidth"
	payBySpec      = "PayBySpec"
	payByCLCU      = "PayByCLCU"
	payOnDemand    = "PayOnDemand"
	payPrepaid     = "PrePay"
	maxBandwidth   = 5120
)

func createParams() []api.Param {
	return []api.Param{
		api.Str("AddressType", api.OneOf("internet", "intranet")), api.Str("AddressIPVersion", api.OneOf("ipv4", "ipv6")),
		api.Str("VpcId"), api.Str("VSwitchId"), api.Str("Address"), api.Str("LoadBalancerName", api.Len(1, 80)),
		api.Str("LoadBalancerSpec", api.OneOf(specs...)), api.Str("InstanceChargeType", api.OneOf(payBySpec, payByCLCU)),
		api.Str("InternetChargeType", api.OneOf(payByTraffic, payByBandwidth)), api.Num("Bandwidth", 1, maxBandwidth, api.Also(-1)),
		api.Str("MasterZoneId"), api.Str("SlaveZoneId"), api.Str("ResourceGroupId"), onOff("DeleteProtection"),
		api.Str("ModificationProtectionStatus", api.OneOf("ConsoleProtection", "NonProtection")),
		api.Str("ModificationProtectionReason", api.Len(0, 80)), api.Str("ClientToken", api.Len(1, 64)), cloud.TagParams(cloud.MaxTags),
		api.Str("PayType", api.OneOf(payOnDemand, payPrepaid)), api.Str("PricingCycle", api.OneOf("month", "year")),
		api.Num("Duration", 1, 9), api.Flag("AutoPay"), api.Flag("SupportPrivateLink"),
	}
}

type createAnswer struct { //nolint:revive // names on the wire
	LoadBalancerId, LoadBalancerName, Address, AddressIPVersion string
	NetworkType, VpcId, VSwitchId, ResourceGroupId              string
	OrderId                                                     int64
}

func (s service) create(c *api.Call) (any, error) {
	mismatch := api.BadRequest("LX_REQUEST_TOKEN_CONFLICT", "The ClientToken was used before with other parameters.")
	return s.Tokens.Once(c, mismatch, func() (any, error) {
		if s.LoadBalancers.Len() >= s.Limits.LoadBalancers {
			return nil, api.BadRequest("ORDER.QUOTA_EXCEEDED", "The account has %d load balancers, which is its quota.", s.LoadBalancers.Len())
		}
		lb := s.newLoadBalancer(c)
		if !c.Holds("slb.created-active") {
			lb.Status = cloud.Inactive
		}
		if s.SpecSalesEnded && lb.InstanceChargeType == payBySpec {
			return nil, api.BadRequest("ShareSlbHaltSales", "Load balancers that are paid by specification are no longer sold.")
		}
		if lb.InstanceChargeType == payBySpec {
			c.Holds("slb.spec-sold")
		}
		if err := s.chargesTraffic(c, lb, lb.InternetChargeType); err != nil {
			return nil, err
		}
		if lb.AddressType == "intranet" && lb.InternetChargeType == payByBandwidth && c.Holds("slb.intranet-by-traffic") {
			return nil, api.Invalid("InternetChargeType", "an intranet load balancer is charged by traffic")
		}
		if err := s.place(lb, c); err != nil {
			return nil, err
		}
		s.LoadBalancers.Add(lb)
		return createAnswer{
			LoadBalancerId: lb.ID, LoadBalancerName: lb.Name, Address: lb.Address, AddressIPVersion: lb.IPVersion,
			NetworkType: lb.NetworkType, VpcId: lb.VPCID, VSwitchId: lb.VSwitchID, ResourceGroupId: lb.ResourceGroupID,
		}, nil
	})
}

// newLoadBalancer fills in what does not depend on the network.
func (s service) newLoadBalancer(c *api.Call) *cloud.LoadBalancer {
	lb := &cloud.LoadBalancer{
		Object: s.NewObject("lb"), Name: c.Or("LoadBalancerName", "auto_named_slb"), Status: cloud.Active,
		AddressType: c.Or("AddressType", "internet"), IPVersion: c.Or("AddressIPVersion", "ipv4"),
		InternetChargeType: c.Or("InternetChargeType", payByTraffic), Spec: c.Str("LoadBalancerSpec"),
		InstanceChargeType: c.Str("InstanceChargeType"), PayType: c.Or("PayType", payOnDemand),
		Bandwidth: c.Int("Bandwidth", maxBandwidth), ResourceGroupID: c.Or("ResourceGroupId", "rg-emulator"),
		DeleteProtection:       c.Or("DeleteProtection", "off"),
		ModificationProtection: c.Or("ModificationProtectionStatus", "NonProtection"),
		SupportPrivateLink:     c.Bool("SupportPrivateLink", false),
		Listeners:              map[cloud.ListenerKey]*cloud.Listener{},
	}
	if lb.InstanceChargeType == "" {
		lb.InstanceChargeType = payByCLCU
		if lb.Spec != "" {
			lb.InstanceChargeType = payBySpec
		}
	}
	if lb.ModificationProtection == "ConsoleProtection" {
		lb.ModificationProtectionReason = c.Str("ModificationProtectionReason")
	}
	lb.Tags = lb.Tags.With(cloud.TagsIn(c))
	return lb
}

// place gives the load balancer its network, zones and address.
func (s service) place(lb *cloud.LoadBalancer, c *api.Call) error {
	lb.NetworkType = "classic"
	lb.MasterZoneID, lb.SlaveZoneID = c.Str("MasterZoneId"), c.Str("SlaveZoneId")
	if bad := s.checkZones(lb); bad != nil {
		return bad
	}
	if lb.AddressType == "internet" {
		lb.Address = s.NewPublicIP(lb.IPVersion == "ipv6")
		s.defaultZones(lb, "")
		return nil
	}
	vsw, ok := s.VSwitches.Get(c.Str("VSwitchId"))
	switch {
	case !c.Has("VSwitchId"):
		return api.Missing("VSwitchId")
	case !ok:
		return api.NotFound("InvalidVSwitchId.NotFound", "The specified vSwitch %s does not exist.", c.Str("VSwitchId"))
	case c.Has("VpcId") && c.Str("VpcId") != vsw.VPCID:
		return api.BadRequest("InvalidParameter", "The vSwitch %s is not in the VPC %s.", vsw.ID, c.Str("VpcId"))
	}
	address, err := s.privateAddress(c, lb, vsw)
	if errors.Is(err, cloud.ErrNoAddress) {
		return api.BadRequest("VSwitchAvailableIpNotExist", "The vSwitch %s has no available IP address.", vsw.ID)
	}
	if err != nil {
		return api.Invalid("Address", "%v", err)
	}
	lb.NetworkType, lb.VPCID, lb.VSwitchID, lb.Address = "vpc", vsw.VPCID, vsw.ID, address
	s.defaultZones(lb, vsw.ZoneID)
	return nil
}

// privateAddress takes an address of the vSwitch: the wanted one, or a free one of the load balancer's IP version.
func (s service) privateAddress(c *api.Call, lb *cloud.LoadBalancer, vsw *cloud.VSwitch) (string, error) {
	want := c.Str("Address")
	if lb.IPVersion != "ipv6" {
		return s.TakeAddress(vsw, want)
	}
	if want != "" {
		return "", errors.New("the address of an IPv6 load balancer cannot be chosen")
	}
	address, err := s.TakeIPv6(vsw)
	switch {
	case err != nil && !c.Holds("slb.ipv6-needs-range"):
		return s.NewPublicIP(true), nil
	case err == nil && !c.Holds("network.ipv6-addresses"):
		s.ReleaseAddress(vsw.ID, address)
		return s.NewPublicIP(true), nil
	}
	return address, err
}

func (s service) checkZones(lb *cloud.LoadBalancer) *api.Error {
	zones := s.Zones()
	for name, zone := range map[string]string{"MasterZoneId": lb.MasterZoneID, "SlaveZoneId": lb.SlaveZoneID} {
		if zone != "" && !slices.Contains(zones, zone) {
			return api.Invalid(name, "no such zone %s", zone)
		}
	}
	return nil
}

// defaultZones fills in the zones: the primary one is that of the vSwitch, the secondary one another.
func (s service) defaultZones(lb *cloud.LoadBalancer, zone string) {
	if lb.MasterZoneID == "" {
		lb.MasterZoneID = zone
	}
	for v := range s.VSwitches.All() {
		switch {
		case lb.MasterZoneID == "":
			lb.MasterZoneID = v.ZoneID
		case lb.SlaveZoneID == "" && v.ZoneID != lb.MasterZoneID:
			lb.SlaveZoneID = v.ZoneID
		}
	}
}

// beijing is the time zone of the bills: changes of the charge type come into force at its midnight.
var beijing = time.FixedZone("UTC+8", 8*60*60)

func nextMidnight(t time.Time) time.Time {
	y, m, d := t.In(beijing).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, beijing)
}
