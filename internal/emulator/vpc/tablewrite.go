package vpc

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (v service) tableActions() []api.Action {
	return []api.Action{
		{Name: "CreateRouteTable", Kind: api.Write, Params: []api.Param{
			api.Str("VpcId", api.Required), api.Str("RouteTableName", api.Len(1, 128)), api.Str("Description", api.Len(1, 256)),
			api.Str("AssociateType", api.OneOf("VSwitch", "Gateway")), api.Str("ClientToken", api.Len(1, 64)), cloud.TagParams(cloud.MaxTags),
		}, Run: v.createTable},
		{Name: "DeleteRouteTable", Kind: api.Write, Params: []api.Param{api.Str("RouteTableId", api.Required)}, Run: v.deleteTable},
	}
}

func (v service) createTable(c *api.Call) (any, error) {
	n, ok := v.VPCs.Get(c.Str("VpcId"))
	if !ok {
		return nil, vpcNotFound(c.Str("VpcId"))
	}
	return v.Tokens.Once(c, mismatch(), func() (any, error) {
		custom := 0
		for _, t := range v.TablesOf(n.ID) {
			if !t.Phase.Settled(c.Now) {
				return nil, api.BadRequest("OperationConflict", "The route table %s is being created or deleted.", t.ID)
			}
			if t.Type == "Custom" {
				custom++
			}
		}
		if custom >= v.Limits.RouteTablesPerVPC {
			return nil, api.BadRequest("QuotaExceeded.RouteTable", "The VPC has %d custom route tables, which is its quota.", custom)
		}
		end := cloud.Available
		if !c.Holds("vpc.table-available") {
			end = created
		}
		t := &cloud.RouteTable{
			Object: v.NewObject("vtb"), Name: c.Str("RouteTableName"), Description: c.Str("Description"), VPCID: n.ID, RouterID: n.RouterID,
			Type: "Custom", AssociateType: c.Or("AssociateType", "VSwitch"), Phase: v.Begin(cloud.Pending, end, c.Now),
		}
		t.Tags = t.Tags.With(cloud.TagsIn(c))
		v.AddBuiltIn(t, n)
		v.RouteTables.Add(t)
		return struct{ RouteTableId string }{t.ID}, nil //nolint:revive // names on the wire
	})
}

func (v service) deleteTable(c *api.Call) (any, error) {
	t, ok := v.RouteTables.Get(c.Str("RouteTableId"))
	switch {
	case !ok:
		return nil, api.NotFound("InvalidRouteTableId.NotFound", "The specified route table %s does not exist.", c.Str("RouteTableId"))
	case t.Type == "System":
		return nil, api.BadRequest("IncorrectRouteTableType", "The system route table of a VPC cannot be deleted.")
	case !t.Phase.Settled(c.Now):
		return nil, api.BadRequest("IncorrectStatus.RouteTableStatus", "The route table is %s.", t.Phase.At(c.Now))
	case t.UsersEntries() > 0, t.CustomEntries() > 0 && !c.Holds("vpc.table-goes-with-ipv6-default"):
		return nil, api.BadRequest("IncorrectRouteTableStatus.RouteEntryExist", "The route table has custom entries.")
	}
	for _, s := range v.VSwitchesOf(t.VPCID) {
		if s.RouteTableID == t.ID {
			return nil, api.BadRequest("OperationDenied", "The route table is associated with vSwitch %s.", s.ID)
		}
	}
	v.BeginDeleteTable(t, c.Now)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

func (v service) vSwitch(c *api.Call) (*cloud.VSwitch, error) {
	s, ok := v.VSwitches.Get(c.Str("VSwitchId"))
	if !ok {
		return nil, api.NotFound("InvalidVSwitchId.NotFound", "The specified vSwitch %s does not exist.", c.Str("VSwitchId"))
	}
	return s, nil
}

func (v service) describeVSwitch(c *api.Call) (any, error) {
	s, err := v.vSwitch(c)
	if err != nil {
		return nil, err
	}
	type resource struct {
		ResourceType  string
		ResourceCount int
	}
	answer := struct {
		vSwitchView
		CloudResources struct{ CloudResourceSetType []resource }
	}{vSwitchView: v.vSwitchView(s)}
	count := len(v.Instances.Select(func(i *cloud.Instance) bool { return i.VSwitchID == s.ID }))
	answer.CloudResources.CloudResourceSetType = []resource{{"ECS", count}}
	return answer, nil
}

func (v service) canAllocate(c *api.Call) (any, error) {
	s, err := v.vSwitch(c)
	if err != nil {
		return nil, err
	}
	return struct{ CanAllocate bool }{s.CanTake(c.Str("PrivateIpAddress"))}, nil
}
