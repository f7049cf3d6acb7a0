package vpc

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func describeVpcsParams() []api.Param {
	return append(api.Numbered(pageLimit), api.Str("VpcId"), api.Str("VpcName"), api.Flag("IsDefault"),
		api.Str("ResourceGroupId"), api.Flag("DryRun"), cloud.TagParams(cloud.MaxTags))
}

type vpcView struct { //nolint:revive // names on the wire
	VpcId, VpcName, CidrBlock, Ipv6CidrBlock string
	Status, RegionId, VRouterId              string
	IsDefault                                bool
	ResourceGroupId, CreationTime            string
	SecondaryCidrBlocks                      struct{ SecondaryCidrBlock []string }
	UserCidrs                                struct{ UserCidr []string }
	Ipv6CidrBlocks                           struct {
		Ipv6CidrBlock []ipv6Block
	}
	VSwitchIds struct{ VSwitchId []string }
	Tags       struct{ Tag []cloud.TagView }
}

type ipv6Block struct{ Ipv6CidrBlock string }

type vpcListView struct {
	vpcView
	RouterTableIds struct{ RouterTableIds []string } //nolint:revive // the doubled name is the wire's
}

func (v service) describeVpcs(c *api.Call) (any, error) {
	tags := cloud.TagsIn(c)
	all := v.VPCs.Select(func(n *cloud.VPC) bool {
		return passes(c, []filter{{"VpcId", n.ID}, {"VpcName", n.Name}}) &&
			(!c.Has("IsDefault") || c.Bool("IsDefault", false) == n.IsDefault) && n.Tags.Match(tags)
	})
	return api.NumberedList(c, all, defaultPage, "Vpcs", "Vpc", func(n *cloud.VPC) vpcListView {
		view := vpcListView{vpcView: v.vpcView(n)}
		for _, t := range v.TablesOf(n.ID) {
			view.RouterTableIds.RouterTableIds = append(view.RouterTableIds.RouterTableIds, t.ID)
		}
		return view
	}), nil
}

func (v service) vpcView(n *cloud.VPC) vpcView {
	view := vpcView{
		VpcId: n.ID, VpcName: n.Name, CidrBlock: n.CIDR, Status: cloud.Available, RegionId: v.Region, VRouterId: n.RouterID,
		IsDefault: n.IsDefault, CreationTime: cloud.Timestamp(n.Created),
	}
	view.SecondaryCidrBlocks.SecondaryCidrBlock = []string{}
	view.UserCidrs.UserCidr = []string{}
	view.Ipv6CidrBlocks.Ipv6CidrBlock = []ipv6Block{}
	if n.IPv6.IsValid() {
		view.Ipv6CidrBlock = n.IPv6.String()
		view.Ipv6CidrBlocks.Ipv6CidrBlock = []ipv6Block{{view.Ipv6CidrBlock}}
	}
	view.VSwitchIds.VSwitchId = []string{}
	for _, s := range v.VSwitchesOf(n.ID) {
		view.VSwitchIds.VSwitchId = append(view.VSwitchIds.VSwitchId, s.ID)
	}
	view.Tags.Tag = n.Tags.Views()
	return view
}

func (v service) describeVpcAttribute(c *api.Call) (any, error) {
	n, ok := v.VPCs.Get(c.Str("VpcId"))
	if !ok {
		return nil, vpcNotFound(c.Str("VpcId"))
	}
	type resource struct {
		ResourceType  string
		ResourceCount int
	}
	answer := struct {
		vpcView
		CloudResources struct{ CloudResourceSetType []resource }
		AssociatedCens struct{ AssociatedCen []struct{ CenId string } } //nolint:revive // names on the wire
	}{vpcView: v.vpcView(n)}
	answer.CloudResources.CloudResourceSetType = []resource{
		{"VSwitch", len(v.VSwitchesOf(n.ID))}, {"RouteTable", len(v.TablesOf(n.ID))}, {"VRouter", 1},
	}
	answer.AssociatedCens.AssociatedCen = []struct{ CenId string }{} //nolint:revive // names on the wire
	return answer, nil
}

func vpcNotFound(id string) *api.Error {
	return api.NotFound("InvalidVpcId.NotFound", "The specified VPC %s does not exist.", id)
}

func describeVSwitchesParams() []api.Param {
	return append(api.Numbered(pageLimit), api.Str("VSwitchId"), api.Str("VpcId"), api.Str("ZoneId"), api.Str("VSwitchName"),
		api.Str("RouteTableId"), api.Str("ResourceGroupId"), api.Flag("IsDefault"), api.Flag("DryRun"), cloud.TagParams(cloud.MaxTags))
}

type routeTableRef struct{ RouteTableId, RouteTableType string } //nolint:revive // names on the wire

type vSwitchView struct { //nolint:revive // names on the wire
	VSwitchId, VSwitchName, VpcId, ZoneId, CidrBlock string
	Ipv6CidrBlock                                    string
	AvailableIpAddressCount                          int
	Status                                           string
	IsDefault                                        bool
	RouteTable                                       routeTableRef
	ResourceGroupId, CreationTime                    string
	Tags                                             struct{ Tag []cloud.TagView }
}

func (v service) describeVSwitches(c *api.Call) (any, error) {
	tags := cloud.TagsIn(c)
	all := v.VSwitches.Select(func(s *cloud.VSwitch) bool {
		return passes(c, []filter{
			{"VSwitchId", s.ID}, {"VpcId", s.VPCID}, {"ZoneId", s.ZoneID}, {"VSwitchName", s.Name}, {"RouteTableId", s.RouteTableID},
		}) && s.Tags.Match(tags)
	})
	return api.NumberedList(c, all, defaultPage, "VSwitches", "VSwitch", v.vSwitchView), nil
}

func (v service) vSwitchView(s *cloud.VSwitch) vSwitchView {
	view := vSwitchView{
		VSwitchId: s.ID, VSwitchName: s.Name, VpcId: s.VPCID, ZoneId: s.ZoneID, CidrBlock: s.Prefix.String(),
		AvailableIpAddressCount: s.Free(), Status: cloud.Available, IsDefault: s.IsDefault, CreationTime: cloud.Timestamp(s.Created),
	}
	if s.IPv6.IsValid() {
		view.Ipv6CidrBlock = s.IPv6.String()
	}
	if t, ok := v.RouteTables.Get(s.RouteTableID); ok {
		view.RouteTable = routeTableRef{t.ID, t.Type}
	}
	view.Tags.Tag = s.Tags.Views()
	return view
}
