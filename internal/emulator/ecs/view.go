package ecs

import (
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// The types below are answers: their field names are the wire's.

type instancesAnswer struct {
	page
	Instances struct{ Instance []instance }
}

type ipList struct{ IpAddress []string } //nolint:revive // names on the wire

type instance struct { //nolint:revive // names on the wire
	InstanceId, InstanceName, HostName, RegionId, ZoneId string
	InstanceType, InstanceTypeFamily, ImageId            string
	Status, StoppedMode                                  string
	InstanceChargeType, SpotStrategy                     string
	InstanceNetworkType                                  string
	CreationTime, ExpiredTime, ResourceGroupId           string
	DeletionProtection                                   bool
	VpcAttributes                                        vpcAttributes
	PublicIpAddress, InnerIpAddress                      ipList
	EipAddress                                           eipAddress
	NetworkInterfaces                                    struct{ NetworkInterface []instanceInterface }
	SecurityGroupIds                                     struct{ SecurityGroupId []string }
	MetadataOptions                                      metadataOptions
	Tags                                                 struct{ Tag []cloud.TagView }
	OperationLocks                                       struct{ LockReason []struct{ LockReason string } }
}

type vpcAttributes struct { //nolint:revive // names on the wire
	VpcId, VSwitchId, NatIpAddress string
	PrivateIpAddress               ipList
}

type eipAddress struct { //nolint:revive // names on the wire
	IpAddress, AllocationId string
	Bandwidth               int
}

type instanceInterface struct { //nolint:revive // names on the wire
	NetworkInterfaceId, Type, PrimaryIpAddress, MacAddress string
	PrivateIpSets                                          struct{ PrivateIpSet []privateIP }
	Ipv6Sets                                               struct{ Ipv6Set []ipv6 }
}

type privateIP struct { //nolint:revive // names on the wire
	PrivateIpAddress string
	Primary          bool
}

type ipv6 struct{ Ipv6Address string }

type metadataOptions struct{ HttpTokens, HttpEndpoint string } //nolint:revive // names on the wire

func (e service) view(i *cloud.Instance, c *api.Call) instance {
	v := instance{
		InstanceId: i.ID, InstanceName: i.Name, HostName: i.HostName, RegionId: e.Region, ZoneId: i.ZoneID,
		InstanceType: i.Type, InstanceTypeFamily: family(i.Type), ImageId: i.ImageID,
		Status: i.Status(c.Now), StoppedMode: "Not-applicable",
		InstanceChargeType: i.ChargeType, SpotStrategy: i.SpotStrategy, InstanceNetworkType: "vpc",
		CreationTime: i.Created.UTC().Format("2006-01-02T15:04Z"), ExpiredTime: "2099-12-31T15:59Z",
		DeletionProtection: i.DeletionProtection,
		VpcAttributes: vpcAttributes{
			VpcId: i.VPCID, VSwitchId: i.VSwitchID, PrivateIpAddress: ipList{[]string{i.PrivateIP}},
		},
		PublicIpAddress: ipList{[]string{}}, InnerIpAddress: ipList{[]string{}},
		MetadataOptions: metadataOptions{i.HTTPTokens, i.HTTPEndpoint},
	}
	v.SecurityGroupIds.SecurityGroupId = append([]string{}, i.SecurityGroups...)
	v.Tags.Tag = i.Tags.Views()
	v.OperationLocks.LockReason = []struct{ LockReason string }{}
	if eip, ok := e.EIPOf(i.ID, c.Now); ok {
		v.EipAddress = eipAddress{eip.Address, eip.ID, eip.Bandwidth}
	}
	if eni := i.PrimaryInterface; eni != nil {
		v.NetworkInterfaces.NetworkInterface = []instanceInterface{interfaceOfInstance(eni)}
	}
	for _, eni := range i.SecondaryInterfaces {
		v.NetworkInterfaces.NetworkInterface = append(v.NetworkInterfaces.NetworkInterface, interfaceOfInstance(eni))
	}
	return v
}

func interfaceOfInstance(eni *cloud.Interface) instanceInterface {
	v := instanceInterface{
		NetworkInterfaceId: eni.ID, Type: eni.Type, PrimaryIpAddress: eni.PrimaryIP, MacAddress: eni.MAC,
	}
	v.PrivateIpSets.PrivateIpSet = privateIPs(eni)
	v.Ipv6Sets.Ipv6Set = ipv6s(eni)
	return v
}

func ipv6s(eni *cloud.Interface) []ipv6 {
	views := make([]ipv6, 0, len(eni.IPv6s))
	for _, ip := range eni.IPv6s {
		views = append(views, ipv6{ip})
	}
	return views
}

func privateIPs(eni *cloud.Interface) []privateIP {
	ips := make([]privateIP, 0, len(eni.PrivateIPs))
	for _, ip := range eni.PrivateIPs {
		ips = append(ips, privateIP{ip, ip == eni.PrimaryIP})
	}
	return ips
}

// family is the part of a type that names its generation: ecs.g7.large -> ecs.g7.
func family(instanceType string) string {
	if i := strings.LastIndexByte(instanceType, '.'); i > 0 {
		return instanceType[:i]
	}
	return instanceType
}
