// Package vpc carries out the actions of Virtual Private Cloud on the store.
package vpc

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// service carries the store that the actions work on.
type service struct{ *cloud.Store }

// Page sizes of VPC lists. The maximum is assumed: no document states it.
const (
	pageLimit   = 50
	defaultPage = 10
)

// Product returns the actions of VPC on a store.
func Product(s *cloud.Store) api.Product {
	v := service{s}
	conflict := api.BadRequest("TaskConflict", "The operation is too frequent: another route task of this VPC is running.")
	return api.Product{Name: "vpc", Version: api.VersionVPC, Actions: slices.Concat(v.eipActions(), v.tableActions(), []api.Action{
		{Name: "DescribeVpcs", Kind: api.Read, Params: describeVpcsParams(), Run: v.describeVpcs},
		{Name: "DescribeVpcAttribute", Kind: api.Read, Params: []api.Param{api.Str("VpcId", api.Required), api.Flag("DryRun")},
			Run: v.describeVpcAttribute},
		{Name: "DescribeVSwitches", Kind: api.Read, Params: describeVSwitchesParams(), Run: v.describeVSwitches},
		{Name: "DescribeRouteTableList", Kind: api.Read, Params: describeTablesParams(), Run: v.describeTables},
		{Name: "DescribeRouteEntryList", Kind: api.Read, Params: describeEntriesParams(s.Limits.RouteEntryPage), Run: v.describeEntries},
		{Name: "CreateRouteEntry", Kind: api.Write, Params: createEntryParams(), Hold: v.holdTable, Busy: conflict, Run: v.createEntry},
		{Name: "CreateRouteEntries", Kind: api.Write, Params: batchParams(s.Limits.RouteEntriesPerCall), Hold: v.holdBatch, Busy: conflict,
			Run: v.createEntries},
		{Name: "DeleteRouteEntry", Kind: api.Write, Params: deleteEntryParams(), Hold: v.holdTable, Busy: conflict, Run: v.deleteEntry},
		{Name: "DeleteRouteEntries", Kind: api.Write, Params: batchParams(s.Limits.RouteEntriesPerCall), Hold: v.holdBatch, Busy: conflict,
			Run: v.deleteEntries},
		{Name: "DescribeVSwitchAttributes", Kind: api.Read, Params: []api.Param{api.Str("VSwitchId", api.Required), api.Flag("DryRun")},
			Run: v.describeVSwitch},
		{Name: "CheckCanAllocateVpcPrivateIpAddress", Kind: api.Read, Params: []api.Param{
			api.Str("VSwitchId", api.Required), api.Str("PrivateIpAddress", api.Required), api.Str("IpVersion", api.OneOf("ipv4", "ipv6")),
		}, Run: v.canAllocate},
	})}
}

// filter is one equality filter of a list: a parameter that is absent lets everything pass.
type filter struct{ param, have string }

func passes(c *api.Call, filters []filter) bool {
	for _, f := range filters {
		if c.Has(f.param) && c.Str(f.param) != f.have {
			return false
		}
	}
	return true
}
