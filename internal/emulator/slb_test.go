package emulator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// newLB creates an intranet load balancer and returns its id.
func (a *account) newLB(edit ...func(*slbapi.CreateLoadBalancerRequest)) string {
	a.t.Helper()
	r := slbapi.CreateCreateLoadBalancerRequest()
	r.AddressType, r.VSwitchId, r.LoadBalancerName = "intranet", "vsw-a", "lb-under-test"
	for _, e := range edit {
		e(r)
	}
	return testkit.Must(a.slb.CreateLoadBalancer(r))(a.t).LoadBalancerId
}

func (a *account) describeLB(id string) *slbapi.DescribeLoadBalancerAttributeResponse {
	a.t.Helper()
	r := slbapi.CreateDescribeLoadBalancerAttributeRequest()
	r.LoadBalancerId = id
	return testkit.Must(a.slb.DescribeLoadBalancerAttribute(r))(a.t)
}

func TestLoadBalancerLife(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	id := a.newLB(func(r *slbapi.CreateLoadBalancerRequest) {
		r.DeleteProtection = "on"
		r.LoadBalancerSpec = "slb.s1.small"
		r.Tag = &[]slbapi.CreateLoadBalancerTag{{Key: "owner", Value: "test"}}
	})
	lb := a.describeLB(id)
	wantEqual(t, "identity",
		[]string{lb.LoadBalancerId, lb.LoadBalancerName, lb.LoadBalancerStatus, lb.AddressType, lb.VpcId, lb.VSwitchId, lb.MasterZoneId,
			lb.SlaveZoneId, lb.InstanceChargeType, lb.LoadBalancerSpec},
		[]string{id, "lb-under-test", "active", "intranet", "vpc-emulator", "vsw-a", "cn-hangzhou-a", "cn-hangzhou-b", "PayBySpec",
			"slb.s1.small"})
	wantEqual(t, "tags", lb.Tags.Tag, []slbapi.Tag{{TagKey: "owner", TagValue: "test"}})

	del := slbapi.CreateDeleteLoadBalancerRequest()
	del.LoadBalancerId = id
	_, err := a.slb.DeleteLoadBalancer(del)
	wantCode(t, err, "OperationDenied.DeleteProtectionIsOn", 400)

	protect := slbapi.CreateSetLoadBalancerDeleteProtectionRequest()
	protect.LoadBalancerId, protect.DeleteProtection = id, "off"
	testkit.Must(a.slb.SetLoadBalancerDeleteProtection(protect))(t)
	testkit.Must(a.slb.DeleteLoadBalancer(del))(t)
	_, err = a.slb.DeleteLoadBalancer(del)
	wantCode(t, err, "InvalidLoadBalancerId.NotFound", 404)
	if !strings.Contains(err.Error(), "LoadBalancerId does not exist") {
		t.Errorf("the message %q lacks the text that clients match", err)
	}
}

func TestLoadBalancerAttributes(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	id := a.newLB(func(r *slbapi.CreateLoadBalancerRequest) {
		r.AddressType, r.VSwitchId, r.LoadBalancerSpec = "internet", "", "slb.s1.small"
		r.InternetChargeType, r.Bandwidth = "paybybandwidth", requests.NewInteger(5)
	})
	name := slbapi.CreateSetLoadBalancerNameRequest()
	name.LoadBalancerId, name.LoadBalancerName = id, "renamed"
	testkit.Must(a.slb.SetLoadBalancerName(name))(t)
	protection := slbapi.CreateSetLoadBalancerModificationProtectionRequest()
	protection.LoadBalancerId, protection.ModificationProtectionStatus, protection.ModificationProtectionReason = id, "ConsoleProtection", "managed"
	testkit.Must(a.slb.SetLoadBalancerModificationProtection(protection))(t)
	spec := slbapi.CreateModifyLoadBalancerInstanceSpecRequest()
	spec.LoadBalancerId, spec.LoadBalancerSpec = id, "slb.s2.small"
	testkit.Must(a.slb.ModifyLoadBalancerInstanceSpec(spec))(t)
	internet := slbapi.CreateModifyLoadBalancerInternetSpecRequest()
	internet.LoadBalancerId, internet.InternetChargeType, internet.Bandwidth = id, "paybytraffic", requests.NewInteger(7)
	testkit.Must(a.slb.ModifyLoadBalancerInternetSpec(internet))(t)

	lb := a.describeLB(id)
	// The bandwidth changes at once, the charge type at the next midnight.
	wantEqual(t, "attributes",
		[]string{lb.LoadBalancerName, lb.ModificationProtectionStatus, lb.ModificationProtectionReason, lb.LoadBalancerSpec,
			lb.InternetChargeType, fmt.Sprint(lb.Bandwidth)},
		[]string{"renamed", "ConsoleProtection", "managed", "slb.s2.small", "paybybandwidth", "7"})

	usage := slbapi.CreateModifyLoadBalancerInstanceChargeTypeRequest()
	usage.LoadBalancerId, usage.InstanceChargeType = id, "PayByCLCU"
	testkit.Must(a.slb.ModifyLoadBalancerInstanceChargeType(usage))(t)
	_, err := a.slb.ModifyLoadBalancerInstanceSpec(spec)
	wantCode(t, err, "OperationDenied.PayByCLCU", 400)
	usage.InstanceChargeType = "PayBySpec"
	_, err = a.slb.ModifyLoadBalancerInstanceChargeType(usage)
	wantCode(t, err, "Operation.NotAllowed", 400)

	status := slbapi.CreateSetLoadBalancerStatusRequest()
	status.LoadBalancerId, status.LoadBalancerStatus = id, "inactive"
	testkit.Must(a.slb.SetLoadBalancerStatus(status))(t)
	wantEqual(t, "status", a.describeLB(id).LoadBalancerStatus, "inactive")
}

func TestDescribeLoadBalancers(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	var ids []string
	for i := range 5 {
		ids = append(ids, a.newLB(func(r *slbapi.CreateLoadBalancerRequest) {
			r.LoadBalancerName = fmt.Sprintf("lb-%d", i)
			r.Tag = &[]slbapi.CreateLoadBalancerTag{{Key: "n", Value: fmt.Sprint(i)}, {Key: "all", Value: "yes"}}
		}))
	}
	list := func(edit func(*slbapi.DescribeLoadBalancersRequest)) []string {
		r := slbapi.CreateDescribeLoadBalancersRequest()
		edit(r)
		answer := testkit.Must(a.slb.DescribeLoadBalancers(r))(t)
		found := []string{}
		for _, lb := range answer.LoadBalancers.LoadBalancer {
			found = append(found, lb.LoadBalancerId)
		}
		return found
	}
	wantEqual(t, "all", list(func(*slbapi.DescribeLoadBalancersRequest) {}), ids)
	wantEqual(t, "page 2", list(func(r *slbapi.DescribeLoadBalancersRequest) {
		r.PageNumber, r.PageSize = requests.NewInteger(2), requests.NewInteger(2)
	}), ids[2:4])
	wantEqual(t, "past the end", list(func(r *slbapi.DescribeLoadBalancersRequest) {
		r.PageNumber, r.PageSize = requests.NewInteger(4), requests.NewInteger(2)
	}), []string{})
	wantEqual(t, "by ids", list(func(r *slbapi.DescribeLoadBalancersRequest) {
		r.LoadBalancerId = ids[3] + "," + ids[1]
	}), []string{ids[1], ids[3]})
	wantEqual(t, "by name", list(func(r *slbapi.DescribeLoadBalancersRequest) { r.LoadBalancerName = "lb-2" }), ids[2:3])
	wantEqual(t, "old tag filter joins with or", list(func(r *slbapi.DescribeLoadBalancersRequest) {
		r.Tags = `[{"TagKey":"n","TagValue":"0"},{"TagKey":"n","TagValue":"4"}]`
	}), []string{ids[0], ids[4]})
	wantEqual(t, "tags join with and", list(func(r *slbapi.DescribeLoadBalancersRequest) {
		r.Tag = &[]slbapi.DescribeLoadBalancersTag{{Key: "all", Value: "yes"}, {Key: "n", Value: "2"}}
	}), ids[2:3])

	r := slbapi.CreateDescribeLoadBalancersRequest()
	r.PageSize = requests.NewInteger(101)
	_, err := a.slb.DescribeLoadBalancers(r)
	wantCode(t, err, "InvalidParameter", 400)
}

func TestClientToken(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	token := func(r *slbapi.CreateLoadBalancerRequest) { r.ClientToken = "once" }
	wantEqual(t, "second result", a.newLB(token), a.newLB(token))
	r := slbapi.CreateCreateLoadBalancerRequest()
	r.AddressType, r.VSwitchId, r.LoadBalancerName, r.ClientToken = "intranet", "vsw-b", "other", "once"
	_, err := a.slb.CreateLoadBalancer(r)
	wantCode(t, err, "LX_REQUEST_TOKEN_CONFLICT", 400)
}

func TestCreateLoadBalancerRefusals(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.VSwitches = append(config.VSwitches,
		cloud.VSwitchConfig{ID: "vsw-tiny", VPCID: "vpc-emulator", Zone: "cn-hangzhou-a", CIDR: "10.3.0.0/29"})
	config.Quotas.LoadBalancers = 6
	a := newAccount(t, emulator.Options{Config: config})
	tests := []struct {
		name, code string
		status     int
		edit       func(*slbapi.CreateLoadBalancerRequest)
	}{
		{"no vSwitch", "MissingParameter", 400, func(r *slbapi.CreateLoadBalancerRequest) { r.VSwitchId = "" }},
		{"unknown vSwitch", "InvalidVSwitchId.NotFound", 404, func(r *slbapi.CreateLoadBalancerRequest) { r.VSwitchId = "vsw-x" }},
		{"unknown spec", "InvalidParameter", 400, func(r *slbapi.CreateLoadBalancerRequest) { r.LoadBalancerSpec = "huge" }},
		{"unknown zone", "InvalidParameter", 400, func(r *slbapi.CreateLoadBalancerRequest) { r.MasterZoneId = "cn-hangzhou-z" }},
		{"bad address type", "InvalidParameter", 400, func(r *slbapi.CreateLoadBalancerRequest) { r.AddressType = "lan" }},
		{"unknown region", "InvalidRegionId.NotFound", 404, func(r *slbapi.CreateLoadBalancerRequest) { r.RegionId = "cn-nowhere" }},
		{"address outside", "InvalidParameter", 400, func(r *slbapi.CreateLoadBalancerRequest) { r.Address = "10.9.0.1" }},
	}
	for _, test := range tests {
		r := slbapi.CreateCreateLoadBalancerRequest()
		r.AddressType, r.VSwitchId = "intranet", "vsw-a"
		test.edit(r)
		_, err := a.slb.CreateLoadBalancer(r)
		t.Run(test.name, func(t *testing.T) { wantCode(t, err, test.code, test.status) })
	}
	r := slbapi.CreateCreateLoadBalancerRequest()
	r.AddressType, r.VSwitchId = "intranet", "vsw-tiny"
	for range 4 {
		testkit.Must(a.slb.CreateLoadBalancer(r))(t)
	}
	_, err := a.slb.CreateLoadBalancer(r)
	wantCode(t, err, "VSwitchAvailableIpNotExist", 400)
	a.newLB()
	a.newLB()
	r.VSwitchId = "vsw-a"
	_, err = a.slb.CreateLoadBalancer(r)
	wantCode(t, err, "ORDER.QUOTA_EXCEEDED", 400)
}

func TestSpecSalesEnded(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.SpecSalesEnded = true
	a := newAccount(t, emulator.Options{Config: config})
	a.newLB()
	r := slbapi.CreateCreateLoadBalancerRequest()
	r.AddressType, r.VSwitchId, r.LoadBalancerSpec = "intranet", "vsw-a", "slb.s1.small"
	_, err := a.slb.CreateLoadBalancer(r)
	wantCode(t, err, "ShareSlbHaltSales", 400)
}

func TestUsageByTrafficOnly(t *testing.T) {
	t.Parallel()
	for _, only := range []bool{false, true} {
		config := cloud.DefaultConfig()
		config.UsageByTrafficOnly = only
		a := newAccount(t, emulator.Options{Config: config})
		r := slbapi.CreateCreateLoadBalancerRequest()
		r.AddressType, r.InternetChargeType = "internet", "paybybandwidth"
		if _, err := a.slb.CreateLoadBalancer(r); only {
			wantCode(t, err, "OperationDenied.PayByCLCU", 400)
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	id := a.newLB()
	tag := slbapi.CreateTagResourcesRequest()
	tag.ResourceType, tag.ResourceId = "instance", &[]string{id}
	tag.Tag = &[]slbapi.TagResourcesTag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}
	testkit.Must(a.slb.TagResources(tag))(t)
	tag.Tag = &[]slbapi.TagResourcesTag{{Key: "a", Value: "3"}}
	testkit.Must(a.slb.TagResources(tag))(t)

	list := slbapi.CreateListTagResourcesRequest()
	list.ResourceType, list.ResourceId = "instance", &[]string{id}
	got := testkit.Must(a.slb.ListTagResources(list))(t).TagResources.TagResource
	wantEqual(t, "tags", sorted(got, func(r slbapi.TagResource) string { return r.TagKey + "=" + r.TagValue }), []string{"a=3", "b=2"})

	untag := slbapi.CreateUntagResourcesRequest()
	untag.ResourceType, untag.ResourceId, untag.TagKey = "instance", &[]string{id}, &[]string{"a"}
	testkit.Must(a.slb.UntagResources(untag))(t)
	wantEqual(t, "left", a.describeLB(id).Tags.Tag, []slbapi.Tag{{TagKey: "b", TagValue: "2"}})

	tag.ResourceId = &[]string{"lb-none"}
	_, err := a.slb.TagResources(tag)
	wantCode(t, err, "InvalidLoadBalancerId.NotFound", 404)
}
