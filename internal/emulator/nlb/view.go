package nlb

import (
	"cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

type (
	addressView struct { //nolint:revive // names on the wire
		AllocationId, EniId, PrivateIPv4Address, PublicIPv4Address, Ipv6Address string
		PrivateIPv4HcStatus                                                     string
	}
	zoneView struct { //nolint:revive // names on the wire
		ZoneId, VSwitchId, Status string
		LoadBalancerAddresses     []addressView
	}
	protectionView struct {
		Enabled             bool
		Reason, EnabledTime string
	}
	modificationView struct{ Status, Reason, EnabledTime string }
	lockView         struct{ LockReason, LockType string }
	instanceView     struct { //nolint:revive // names on the wire
		LoadBalancerId, LoadBalancerName, LoadBalancerType    string
		LoadBalancerStatus, LoadBalancerBusinessStatus        string
		DNSName, VpcId, RegionId, ResourceGroupId, CreateTime string
		AddressType, AddressIpVersion, Ipv6AddressType        string
		BandwidthPackageId                                    string
		CrossZoneEnabled                                      bool
		Cps                                                   int
		SecurityGroupIds                                      []string
		ZoneMappings                                          []zoneView
		DeletionProtectionConfig                              protectionView
		ModificationProtectionConfig                          modificationView
		OperationLocks                                        []lockView
	}
)

func (s service) view(c *api.Call, lb *cloud.NLB) instanceView {
	v := instanceView{
		LoadBalancerId: lb.ID, LoadBalancerName: lb.Name, LoadBalancerType: "Network", LoadBalancerStatus: lb.Phase.At(c.Now),
		LoadBalancerBusinessStatus: "Normal", DNSName: lb.DNSName, VpcId: lb.VPCID, RegionId: s.Region, ResourceGroupId: lb.ResourceGroupID,
		CreateTime: cloud.Timestamp(lb.Created), AddressType: lb.AddressType, AddressIpVersion: lb.AddressVersion,
		BandwidthPackageId: lb.BandwidthPackageID, CrossZoneEnabled: lb.CrossZone, Cps: lb.Cps,
		SecurityGroupIds: append([]string{}, lb.SecurityGroups...), ZoneMappings: make([]zoneView, 0, len(lb.Zones)),
		OperationLocks:           []lockView{},
		DeletionProtectionConfig: protectionView{Enabled: lb.DeletionProtection, Reason: lb.DeletionProtectionReason},
		ModificationProtectionConfig: modificationView{Status: cmp.Or(lb.ModificationProtection, nonProtection),
			Reason: lb.ModificationProtected},
	}
	if lb.AddressVersion == dualStack {
		v.Ipv6AddressType = lb.IPv6AddressType
	}
	for _, z := range lb.Zones {
		v.ZoneMappings = append(v.ZoneMappings, zoneView{z.ZoneID, z.VSwitchID, z.Status, []addressView{{
			AllocationId: z.AllocationID, EniId: z.EniID, PrivateIPv4Address: z.PrivateIP, PublicIPv4Address: z.PublicIP, Ipv6Address: z.IPv6,
			PrivateIPv4HcStatus: "Healthy",
		}}})
	}
	for _, reason := range lb.Locks {
		v.LoadBalancerBusinessStatus = "Abnormal"
		v.OperationLocks = append(v.OperationLocks, lockView{reason, "Locked"})
	}
	return v
}
