package ecs

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func describeInstancesParams() []api.Param {
	return append(paging(),
		api.JSONList("InstanceIds", pageLimit), api.JSONList("PrivateIpAddresses", pageLimit),
		api.JSONList("EipAddresses", pageLimit), api.JSONList("PublicIpAddresses", pageLimit),
		api.Str("InstanceName"), api.Str("VpcId"), api.Str("VSwitchId"), api.Str("ZoneId"), api.Str("InstanceType"),
		api.Str("Status", api.OneOf(cloud.Pending, cloud.Running, cloud.Starting, cloud.Stopping, cloud.Stopped)),
		api.Str("InstanceNetworkType", api.OneOf("classic", "vpc")), api.Str("ResourceGroupId"),
		api.ListOf("AdditionalAttributes", 20), api.Flag("DryRun"), cloud.TagParams(cloud.MaxTags))
}

func (e service) describeInstances(c *api.Call) (any, error) {
	if c.Bool("DryRun", false) {
		if c.Denied {
			return nil, api.Forbidden("Forbidden.RAM", "User not authorized to operate on the specified resource.")
		}
		return nil, api.BadRequest("DryRunOperation", "Request validation has been passed with DryRun flag set.")
	}
	var found []*cloud.Instance
	if !c.Denied {
		found = e.findInstances(c)
	}
	if ids, ok := c.Params.JSONStrings("InstanceIds"); ok && !c.Denied && len(found) < len(ids) && !c.Holds("ecs.unknown-ids") {
		return nil, api.NotFound("InvalidInstanceId.NotFound", "One of the instances does not exist.")
	}
	items, p, err := cut(c, found)
	if err != nil {
		return nil, err
	}
	answer := instancesAnswer{page: p}
	answer.Instances.Instance = make([]instance, 0, len(items))
	for _, i := range items {
		answer.Instances.Instance = append(answer.Instances.Instance, e.view(i, c))
	}
	return answer, nil
}

// findInstances applies the filters. Ids and addresses are looked up, not searched: clients ask for 100 of 10,000.
func (e service) findInstances(c *api.Call) []*cloud.Instance {
	keep := e.filter(c)
	candidates, listed := e.byID(c)
	if ips, ok := askedIPs(c); ok && !listed {
		candidates, listed = e.byAddress(ips), true
	}
	if !listed {
		return e.Instances.Select(keep)
	}
	return slices.DeleteFunc(candidates, func(i *cloud.Instance) bool { return !keep(i) })
}

// askedIPs are the private addresses that a call asks for. By the page the parameter is in effect only for instances in a VPC:
// https://www.alibabacloud.com/help/doc-detail/25506.htm.
func askedIPs(c *api.Call) ([]string, bool) {
	if c.Has("PrivateIpAddresses") && c.Str("InstanceNetworkType") != "vpc" && c.Holds("ecs.addresses-need-network") {
		return nil, false
	}
	return c.Params.JSONStrings("PrivateIpAddresses")
}

// byID looks InstanceIds up. An empty array is a filter that nothing passes; unknown ids are simply missing.
func (e service) byID(c *api.Call) (found []*cloud.Instance, listed bool) {
	ids, ok := c.Params.JSONStrings("InstanceIds")
	if !ok || len(ids) == 0 && !c.Holds("ecs.no-ids") {
		return nil, false
	}
	for _, id := range ids {
		if i, ok := e.Instances.Get(id); ok {
			found = append(found, i)
		}
	}
	return inOrder(found), true
}

func (e service) byAddress(ips []string) []*cloud.Instance {
	var found []*cloud.Instance
	for vpc := range e.VPCs.All() {
		for _, ip := range ips {
			eni, ok := e.InterfaceByIP(vpc.ID, ip)
			if !ok {
				continue
			}
			if i, ok := e.Instances.Get(eni.InstanceID); ok {
				found = append(found, i)
			}
		}
	}
	return inOrder(found)
}

// inOrder sorts by creation and drops repetitions, so that pages of a filtered list are stable.
func inOrder(found []*cloud.Instance) []*cloud.Instance {
	slices.SortFunc(found, func(a, b *cloud.Instance) int { return int(a.Seq - b.Seq) })
	return slices.Compact(found)
}

// filter reads the filters of a call once, for thousands of instances.
func (e service) filter(c *api.Call) func(*cloud.Instance) bool {
	tags := cloud.TagsIn(c)
	ips, byIP := askedIPs(c)
	eips, byEIP := c.Params.JSONStrings("EipAddresses")
	return func(i *cloud.Instance) bool {
		equal := []struct{ param, have string }{
			{"InstanceName", i.Name}, {"VpcId", i.VPCID}, {"VSwitchId", i.VSwitchID}, {"ZoneId", i.ZoneID},
			{"InstanceType", i.Type}, {"Status", i.Status(c.Now)}, {"InstanceNetworkType", "vpc"},
		}
		for _, f := range equal {
			if c.Has(f.param) && c.Str(f.param) != f.have {
				return false
			}
		}
		switch {
		case c.Has("PublicIpAddresses"), !c.Sees(i.Created), byIP && !slices.Contains(ips, i.PrivateIP):
			return false
		case byEIP:
			eip, bound := e.EIPOf(i.ID, c.Now)
			return bound && slices.Contains(eips, eip.Address) && i.Tags.Match(tags)
		}
		return i.Tags.Match(tags)
	}
}

func describeInstanceStatusParams() []api.Param {
	return append(api.Numbered(50), api.ListOf("InstanceId", pageLimit), api.Str("ZoneId"))
}

func (e service) describeInstanceStatus(c *api.Call) (any, error) {
	ids := c.List("InstanceId")
	all := e.Instances.Select(func(i *cloud.Instance) bool {
		return (len(ids) == 0 || slices.Contains(ids, i.ID)) && (!c.Has("ZoneId") || c.Str("ZoneId") == i.ZoneID)
	})
	return api.NumberedList(c, all, defaultPage, "InstanceStatuses", "InstanceStatus", func(i *cloud.Instance) instanceStatus {
		return instanceStatus{i.ID, i.Status(c.Now)}
	}), nil
}

type instanceStatus struct{ InstanceId, Status string } //nolint:revive // names on the wire
