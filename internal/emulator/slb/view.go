package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// The types below are answers: their field names are the wire's.

// view holds what both the list and the single answer have.
type view struct { //nolint:revive // names on the wire
	LoadBalancerId, LoadBalancerName, LoadBalancerStatus string
	Address, AddressType, AddressIPVersion               string
	NetworkType, VpcId, VSwitchId                        string
	RegionId, RegionIdAlias, MasterZoneId, SlaveZoneId   string
	InstanceChargeType, LoadBalancerSpec, SpecType       string
	Bandwidth                                            int
	PayType, ResourceGroupId                             string
	DeleteProtection, ModificationProtectionStatus       string
	ModificationProtectionReason                         string
	BusinessStatus, ServiceManagedMode                   string
	SupportPrivateLink                                   bool
	CreateTime                                           string
	CreateTimeStamp                                      int64
	Tags                                                 tagList
}

// listView spells the charge type as a code, and in words only in the alias.
type listView struct {
	view
	InternetChargeType, InternetChargeTypeAlias string
}

type attributeView struct { //nolint:revive // names on the wire
	view
	InternetChargeType string
	EndTime            string
	EndTimeStamp       int64
	AutoReleaseTime    int64
	ListenerPorts      struct{ ListenerPort []int }
	// The misspelled twin is really answered; clients read either.
	ListenerPortsAndProtocol struct{ ListenerPortAndProtocol []portAndProtocol }
	ListenerPortsAndProtocal struct{ ListenerPortAndProtocal []portAndProtocal }
	BackendServers           struct{ BackendServer []struct{ ServerId string } }
}

type portAndProtocol struct {
	ListenerPort     int
	ListenerProtocol string
	ListenerForward  string
	ForwardPort      int
	Description      string
}

type portAndProtocal struct {
	ListenerPort     int
	ListenerProtocal string
	ListenerProtocol string
}

func (s service) view(lb *cloud.LoadBalancer) view {
	v := view{
		LoadBalancerId: lb.ID, LoadBalancerName: lb.Name, LoadBalancerStatus: lb.Status,
		Address: lb.Address, AddressType: lb.AddressType, AddressIPVersion: lb.IPVersion,
		NetworkType: lb.NetworkType, VpcId: lb.VPCID, VSwitchId: lb.VSwitchID,
		RegionId: s.Region, RegionIdAlias: s.Region, MasterZoneId: lb.MasterZoneID, SlaveZoneId: lb.SlaveZoneID,
		InstanceChargeType: lb.InstanceChargeType, LoadBalancerSpec: lb.Spec, Bandwidth: lb.Bandwidth,
		PayType: lb.PayType, ResourceGroupId: lb.ResourceGroupID, DeleteProtection: lb.DeleteProtection,
		ModificationProtectionStatus: lb.ModificationProtection, ModificationProtectionReason: lb.ModificationProtectionReason,
		BusinessStatus: "Normal", ServiceManagedMode: "Unmanaged", SupportPrivateLink: lb.SupportPrivateLink,
		CreateTime: cloud.Timestamp(lb.Created), CreateTimeStamp: lb.Created.UnixMilli(),
	}
	v.Tags.Tag = lb.Tags.Views()
	return v
}

// chargeCodes are the codes of the list's InternetChargeType.
var chargeCodes = map[string]string{payByBandwidth: "3", payByTraffic: "4"}

func (s service) listView(lb *cloud.LoadBalancer, c *api.Call) listView {
	charge := lb.ChargeTypeAt(c.Now)
	if !c.Holds("slb.list-charge-code") {
		return listView{view: s.view(lb), InternetChargeType: charge, InternetChargeTypeAlias: charge}
	}
	return listView{view: s.view(lb), InternetChargeType: chargeCodes[charge], InternetChargeTypeAlias: charge}
}

func (s service) attributeView(lb *cloud.LoadBalancer, c *api.Call) attributeView {
	v := attributeView{
		view: s.view(lb), InternetChargeType: lb.ChargeTypeAt(c.Now),
		EndTime: "2999-09-08T16:00:00Z", EndTimeStamp: 32493801600000,
	}
	v.ListenerPorts.ListenerPort = []int{}
	v.ListenerPortsAndProtocol.ListenerPortAndProtocol = []portAndProtocol{}
	v.ListenerPortsAndProtocal.ListenerPortAndProtocal = []portAndProtocal{}
	v.BackendServers.BackendServer = []struct{ ServerId string }{} //nolint:revive // names on the wire
	for _, l := range lb.SortedListeners() {
		a := api.Params(l.Attributes)
		v.ListenerPorts.ListenerPort = append(v.ListenerPorts.ListenerPort, l.Port)
		v.ListenerPortsAndProtocol.ListenerPortAndProtocol = append(v.ListenerPortsAndProtocol.ListenerPortAndProtocol, portAndProtocol{
			l.Port, l.Protocol, a.Str("ListenerForward"), a.Int("ForwardPort", 0), l.Description,
		})
		if c.Holds("slb.misspelled-ports") {
			v.ListenerPortsAndProtocal.ListenerPortAndProtocal = append(v.ListenerPortsAndProtocal.ListenerPortAndProtocal,
				portAndProtocal{l.Port, l.Protocol, l.Protocol})
		}
	}
	return v
}
