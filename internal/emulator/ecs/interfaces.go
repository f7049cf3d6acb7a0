package ecs

import (
	"net/netip"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func describeInterfacesParams() []api.Param {
	return append(paging(),
		api.ListOf("NetworkInterfaceId", pageLimit), api.ListOf("PrivateIpAddress", pageLimit), api.ListOf("Ipv6Address", pageLimit),
		api.Str("PrimaryIpAddress"), api.Str("InstanceId"), api.Str("VpcId"), api.Str("VSwitchId"), api.Str("SecurityGroupId"),
		api.Str("Status"), api.Str("Type", api.OneOf("Primary", "Secondary")), cloud.TagParams(cloud.MaxTags))
}

func (e service) describeInterfaces(c *api.Call) (any, error) {
	items, p, err := cut(c, e.findInterfaces(c))
	if err != nil {
		return nil, err
	}
	answer := struct {
		page
		NetworkInterfaceSets struct{ NetworkInterfaceSet []networkInterface }
	}{page: p}
	answer.NetworkInterfaceSets.NetworkInterfaceSet = make([]networkInterface, 0, len(items))
	for _, eni := range items {
		view := interfaceView(eni)
		if !c.Holds("ecs.interface-in-use") {
			view.Status = "Attached"
		}
		answer.NetworkInterfaceSets.NetworkInterfaceSet = append(answer.NetworkInterfaceSets.NetworkInterfaceSet, view)
	}
	return answer, nil
}

// findInterfaces applies the filters. Addresses are looked up, not searched: clients ask for 100 of 10,000.
func (e service) findInterfaces(c *api.Call) []*cloud.Interface {
	keep, ips := e.interfaceFilter(c), append(c.List("PrivateIpAddress"), canonical(c.List("Ipv6Address"))...)
	if len(ips) == 0 {
		return e.Interfaces.Select(keep)
	}
	var found []*cloud.Interface
	for vpc := range e.VPCs.All() {
		for _, ip := range ips {
			if eni, ok := e.InterfaceByIP(vpc.ID, ip); ok && keep(eni) {
				found = append(found, eni)
			}
		}
	}
	slices.SortFunc(found, func(a, b *cloud.Interface) int { return int(a.Seq - b.Seq) })
	return slices.Compact(found)
}

func (e service) interfaceFilter(c *api.Call) func(*cloud.Interface) bool {
	ids, ips, v6, tags := c.List("NetworkInterfaceId"), c.List("PrivateIpAddress"), canonical(c.List("Ipv6Address")), cloud.TagsIn(c)
	return func(eni *cloud.Interface) bool {
		equal := []struct{ param, have string }{
			{"PrimaryIpAddress", eni.PrimaryIP}, {"InstanceId", eni.InstanceID}, {"VpcId", eni.VPCID},
			{"VSwitchId", eni.VSwitchID}, {"Status", inUse}, {"Type", eni.Type},
		}
		for _, f := range equal {
			if c.Has(f.param) && c.Str(f.param) != f.have {
				return false
			}
		}
		switch {
		case !c.Sees(eni.Created):
			return false
		case len(ids) > 0 && !slices.Contains(ids, eni.ID):
			return false
		case len(ips) > 0 && !intersect(eni.PrivateIPs, ips), len(v6) > 0 && !intersect(eni.IPv6s, v6):
			return false
		case c.Has("SecurityGroupId") && !slices.Contains(eni.SecurityGroups, c.Str("SecurityGroupId")):
			return false
		}
		return eni.Tags.Match(tags)
	}
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// canonical writes addresses in the spelling that they are stored in.
func canonical(texts []string) []string {
	for i, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			texts[i] = address.String()
		}
	}
	return texts
}

// inUse is the status of an interface that is attached to an instance, which all of ours are.
const inUse = "InUse"

type networkInterface struct { //nolint:revive // names on the wire
	NetworkInterfaceId, NetworkInterfaceName, Description string
	Type, Status, InstanceId, MacAddress                  string
	PrivateIpAddress, VpcId, VSwitchId, ZoneId            string
	SourceDestCheck                                       bool
	CreationTime                                          string
	PrivateIpSets                                         struct{ PrivateIpSet []privateIP }
	Ipv6Sets                                              struct{ Ipv6Set []ipv6 }
	SecurityGroupIds                                      struct{ SecurityGroupId []string }
	Attachment                                            attachment
	Tags                                                  struct{ Tag []cloud.TagView }
}

type attachment struct { //nolint:revive // names on the wire
	InstanceId  string
	DeviceIndex int
}

func interfaceView(eni *cloud.Interface) networkInterface {
	v := networkInterface{
		NetworkInterfaceId: eni.ID, NetworkInterfaceName: eni.Name, Description: eni.Description,
		Type: eni.Type, Status: inUse, InstanceId: eni.InstanceID, MacAddress: eni.MAC,
		PrivateIpAddress: eni.PrimaryIP, VpcId: eni.VPCID, VSwitchId: eni.VSwitchID, ZoneId: eni.ZoneID,
		SourceDestCheck: eni.SourceDestCheck, CreationTime: cloud.Timestamp(eni.Created),
		Attachment: attachment{InstanceId: eni.InstanceID},
	}
	v.PrivateIpSets.PrivateIpSet = privateIPs(eni)
	v.Ipv6Sets.Ipv6Set = ipv6s(eni)
	v.SecurityGroupIds.SecurityGroupId = append([]string{}, eni.SecurityGroups...)
	v.Tags.Tag = eni.Tags.Views()
	return v
}

func modifyInterfaceParams() []api.Param {
	return []api.Param{
		api.Str("NetworkInterfaceId", api.Required), api.Flag("SourceDestCheck"),
		api.Str("NetworkInterfaceName", api.Len(2, 128)), api.Str("Description", api.Len(0, 256)),
		api.ListOf("SecurityGroupId", 10), api.Num("QueueNumber", 1, 0), api.Flag("DeleteOnRelease"),
	}
}

func (e service) modifyInterface(c *api.Call) (any, error) {
	eni, ok := e.Interfaces.Get(c.Str("NetworkInterfaceId"))
	if !ok {
		return nil, api.NotFound("InvalidEniId.NotFound", "The specified network interface %s does not exist.", c.Str("NetworkInterfaceId"))
	}
	eni.SourceDestCheck = c.Bool("SourceDestCheck", eni.SourceDestCheck)
	eni.Name = c.Or("NetworkInterfaceName", eni.Name)
	eni.Description = c.Or("Description", eni.Description)
	if groups := c.List("SecurityGroupId"); len(groups) > 0 {
		eni.SecurityGroups = groups
	}
	return nil, nil //nolint:nilnil // an answer of the request id alone
}
