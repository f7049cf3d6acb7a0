package emulator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	ecsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/ecs"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func jsonList(t *testing.T, v ...string) string {
	t.Helper()
	if v == nil {
		v = []string{}
	}
	return string(testkit.Must(json.Marshal(v))(t))
}

func TestDescribeInstances(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	var ids []string
	for i := range 5 {
		id := fmt.Sprintf("i-%d", i)
		a.put(id, emulator.InstanceSpec{Name: "node-" + id, Tags: map[string]string{"n": fmt.Sprint(i)}})
		ids = append(ids, id)
	}
	a.put("i-b", emulator.InstanceSpec{ZoneID: "cn-hangzhou-b", PrivateIP: "10.2.7.7", Status: "Stopped"})
	list := func(edit func(*ecsapi.DescribeInstancesRequest)) (*ecsapi.DescribeInstancesResponse, []string) {
		r := ecsapi.CreateDescribeInstancesRequest()
		edit(r)
		answer := testkit.Must(a.ecs.DescribeInstances(r))(t)
		found := []string{}
		for _, i := range answer.Instances.Instance {
			found = append(found, i.InstanceId)
		}
		return answer, found
	}
	_, got := list(func(r *ecsapi.DescribeInstancesRequest) { r.InstanceIds = jsonList(t, "i-3", "i-none", "i-1") })
	wantEqual(t, "by id", got, []string{"i-1", "i-3"})
	_, got = list(func(r *ecsapi.DescribeInstancesRequest) { r.InstanceIds = "[]" })
	wantEqual(t, "an empty id list matches nothing", got, []string{})
	_, got = list(func(r *ecsapi.DescribeInstancesRequest) {
		r.PrivateIpAddresses, r.InstanceNetworkType = jsonList(t, "10.2.7.7"), "vpc"
	})
	wantEqual(t, "by address", got, []string{"i-b"})
	_, got = list(func(r *ecsapi.DescribeInstancesRequest) { r.PrivateIpAddresses = jsonList(t, "10.2.7.7") })
	wantEqual(t, "by address, without the network type that makes it count", len(got), 6)
	_, got = list(func(r *ecsapi.DescribeInstancesRequest) { r.Status = "Stopped" })
	wantEqual(t, "by status", got, []string{"i-b"})
	_, got = list(func(r *ecsapi.DescribeInstancesRequest) {
		r.Tag = &[]ecsapi.DescribeInstancesTag{{Key: "n", Value: "2"}}
	})
	wantEqual(t, "by tag", got, []string{"i-2"})
	answer, got := list(func(r *ecsapi.DescribeInstancesRequest) {
		r.PageNumber, r.PageSize = requests.NewInteger(2), requests.NewInteger(4)
	})
	wantEqual(t, "page 2", got, []string{"i-4", "i-b"})
	wantEqual(t, "paging", []int{answer.PageNumber, answer.PageSize, answer.TotalCount}, []int{2, 4, 6})

	var paged []string
	token := ""
	for {
		answer, got := list(func(r *ecsapi.DescribeInstancesRequest) { r.MaxResults, r.NextToken = requests.NewInteger(2), token })
		wantEqual(t, "page size echo", answer.PageSize, 2)
		paged = append(paged, got...)
		if token = answer.NextToken; token == "" {
			break
		}
	}
	wantEqual(t, "all pages", paged, append(ids, "i-b"))

	for _, edit := range []func(*ecsapi.DescribeInstancesRequest){
		func(r *ecsapi.DescribeInstancesRequest) { r.PageSize = requests.NewInteger(101) },
		func(r *ecsapi.DescribeInstancesRequest) { r.MaxResults = requests.NewInteger(101) },
		func(r *ecsapi.DescribeInstancesRequest) { r.InstanceIds = "i-1" },
		func(r *ecsapi.DescribeInstancesRequest) { r.NextToken = "forged" },
		func(r *ecsapi.DescribeInstancesRequest) { r.InstanceIds = jsonList(t, make([]string, 101)...) },
	} {
		r := ecsapi.CreateDescribeInstancesRequest()
		edit(r)
		_, err := a.ecs.DescribeInstances(r)
		wantCode(t, err, "InvalidParameter", 400)
	}
}

func TestInstanceFields(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	put := a.put("i-1", emulator.InstanceSpec{Name: "node", Type: "ecs.c7.xlarge"})
	i := testkit.Must(a.ecs.DescribeInstances(ecsapi.CreateDescribeInstancesRequest()))(t).Instances.Instance[0]
	wantEqual(t, "fields",
		[]string{i.InstanceName, i.InstanceType, i.InstanceTypeFamily, i.RegionId, i.ZoneId, i.Status, i.InstanceNetworkType,
			i.VpcAttributes.VpcId, i.VpcAttributes.VSwitchId, i.VpcAttributes.PrivateIpAddress.IpAddress[0],
			i.NetworkInterfaces.NetworkInterface[0].NetworkInterfaceId},
		[]string{"node", "ecs.c7.xlarge", "ecs.c7", region, "cn-hangzhou-a", "Running", "vpc", "vpc-emulator", "vsw-a", put.PrivateIP,
			put.NetworkInterfaceID})
	status := ecsapi.CreateDescribeInstanceStatusRequest()
	status.InstanceId = &[]string{"i-1"}
	got := testkit.Must(a.ecs.DescribeInstanceStatus(status))(t).InstanceStatuses.InstanceStatus
	wantEqual(t, "status", got, []ecsapi.InstanceStatus{{InstanceId: "i-1", Status: "Running"}})
}

func TestNetworkInterfaces(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	put := a.put("i-1", emulator.InstanceSpec{SourceDestCheck: true})
	a.put("i-2", emulator.InstanceSpec{})
	describe := func() ecsapi.NetworkInterfaceSet {
		r := ecsapi.CreateDescribeNetworkInterfacesRequest()
		r.InstanceId, r.PrivateIpAddress = "i-1", &[]string{put.PrivateIP}
		all := testkit.Must(a.ecs.DescribeNetworkInterfaces(r))(t).NetworkInterfaceSets.NetworkInterfaceSet
		wantEqual(t, "interfaces", len(all), 1)
		return all[0]
	}
	eni := describe()
	wantEqual(t, "fields",
		[]any{eni.NetworkInterfaceId, eni.Type, eni.Status, eni.PrivateIpAddress, eni.SourceDestCheck, eni.Attachment.InstanceId},
		[]any{put.NetworkInterfaceID, "Primary", "InUse", put.PrivateIP, true, "i-1"})
	modify := ecsapi.CreateModifyNetworkInterfaceAttributeRequest()
	modify.NetworkInterfaceId, modify.SourceDestCheck = eni.NetworkInterfaceId, requests.NewBoolean(false)
	testkit.Must(a.ecs.ModifyNetworkInterfaceAttribute(modify))(t)
	wantEqual(t, "check", describe().SourceDestCheck, false)
	modify.NetworkInterfaceId = "eni-none"
	_, err := a.ecs.ModifyNetworkInterfaceAttribute(modify)
	wantCode(t, err, "InvalidEniId.NotFound", 404)
}
