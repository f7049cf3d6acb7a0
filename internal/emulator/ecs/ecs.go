// Package ecs carries out the actions of Elastic Compute Service on the store.
package ecs

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// service carries the store that the actions work on.
type service struct{ *cloud.Store }

// pageLimit is the largest page of ECS, for both ways of paging and for lists of ids and addresses.
const pageLimit = 100

// defaultPage is the page size without PageSize or MaxResults.
const defaultPage = 10

// Product returns the actions of ECS on a store.
func Product(s *cloud.Store) api.Product {
	e := service{s}
	return api.Product{Name: "ecs", Version: api.VersionECS, Actions: append(e.securityGroupActions(), []api.Action{
		{Name: "DescribeInstances", Kind: api.Read, DeniedIsEmpty: true, Params: describeInstancesParams(), Run: e.describeInstances},
		{Name: "DescribeInstanceStatus", Kind: api.Read, Params: describeInstanceStatusParams(), Run: e.describeInstanceStatus},
		{Name: "DescribeNetworkInterfaces", Kind: api.Read, Params: describeInterfacesParams(), Run: e.describeInterfaces},
		{Name: "ModifyNetworkInterfaceAttribute", Kind: api.Write, Params: modifyInterfaceParams(), Run: e.modifyInterface},
		{Name: "DescribeRegions", Kind: api.Read, Params: []api.Param{api.Str("InstanceChargeType"), api.Str("AcceptLanguage")},
			Run: e.describeRegions},
		{Name: "DescribeZones", Kind: api.Read,
			Params: []api.Param{api.Str("InstanceChargeType"), api.Str("AcceptLanguage"), api.Flag("Verbose")}, Run: e.describeZones},
		{Name: "RunInstances", Kind: api.Write, Params: runInstancesParams(), Run: e.runInstances},
		{Name: "StartInstance", Kind: api.Write, Params: []api.Param{instanceID(), api.Flag("InitLocalDisk"), api.Flag("DryRun")},
			Run: e.startInstance},
		{Name: "StopInstance", Kind: api.Write, Params: []api.Param{
			instanceID(), api.Flag("ForceStop"), api.Str("StoppedMode", api.OneOf("StopCharging", "KeepCharging")), api.Flag("ConfirmStop"),
			api.Flag("DryRun"),
		}, Run: e.stopInstance},
		{Name: "DeleteInstance", Kind: api.Write,
			Params: []api.Param{instanceID(), api.Flag("Force"), api.Flag("TerminateSubscription"), api.Flag("DryRun")}, Run: e.deleteInstance},
	}...)}
}

func instanceID() api.Param { return api.Str("InstanceId", api.Required) }

// paging are the rules of the two ways of paging, which most ECS lists offer side by side.
func paging() []api.Param {
	return append(api.Numbered(pageLimit), api.Tokened("MaxResults", pageLimit)...)
}

// page holds the fields that every ECS list answers with. PageSize echoes the requested size in both ways of paging:
// clients stop when it is below what they asked for.
type page struct {
	NextToken  string
	PageNumber int
	PageSize   int
	TotalCount int
}

// cut serves the page that the call asks for: by token when MaxResults or NextToken is there, else by number.
func cut[T cloud.Resource](c *api.Call, all []T) ([]T, page, error) {
	if !c.Has("MaxResults") && !c.Has("NextToken") {
		p := api.PageOf(c, all, defaultPage)
		return p.Items, page{PageNumber: p.Number, PageSize: p.Size, TotalCount: p.Total}, nil
	}
	size := c.Int("MaxResults", defaultPage)
	items, next, err := api.TokenPage(c, all, size, cloud.Seq)
	if !c.Holds("ecs.page-size-echo") {
		size = len(items)
	}
	return items, page{NextToken: next, PageNumber: 1, PageSize: size, TotalCount: len(all)}, err
}
