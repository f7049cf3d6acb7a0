package emulator_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

const table = "vtb-emulator"

func (a *account) createRoute(cidr, nextHop string) (string, error) {
	r := vpcapi.CreateCreateRouteEntryRequest()
	r.RouteTableId, r.DestinationCidrBlock, r.NextHopId, r.NextHopType = table, cidr, nextHop, "Instance"
	answer, err := a.vpc.CreateRouteEntry(r)
	if err != nil {
		return "", err
	}
	return answer.RouteEntryId, nil
}

// createRoutes creates entries from "cidr", all to one next hop.
func (a *account) createRoutes(nextHop string, cidrs ...string) (*vpcapi.CreateRouteEntriesResponse, error) {
	r := vpcapi.CreateCreateRouteEntriesRequest()
	var entries []vpcapi.CreateRouteEntriesRouteEntries
	for _, c := range cidrs {
		entries = append(entries,
			vpcapi.CreateRouteEntriesRouteEntries{RouteTableId: table, DstCidrBlock: c, NextHop: nextHop, NextHopType: "Instance"})
	}
	r.RouteEntries = &entries
	return a.vpc.CreateRouteEntries(r)
}

func (a *account) deleteRoutes(nextHop string, cidrs ...string) (*vpcapi.DeleteRouteEntriesResponse, error) {
	r := vpcapi.CreateDeleteRouteEntriesRequest()
	var entries []vpcapi.DeleteRouteEntriesRouteEntries
	for _, c := range cidrs {
		entries = append(entries, vpcapi.DeleteRouteEntriesRouteEntries{RouteTableId: table, DstCidrBlock: c, NextHop: nextHop})
	}
	r.RouteEntries = &entries
	return a.vpc.DeleteRouteEntries(r)
}

// routes lists the custom entries as "cidr status", page by page.
func (a *account) routes(page int) []string {
	a.t.Helper()
	var all []string
	r := vpcapi.CreateDescribeRouteEntryListRequest()
	r.RouteTableId, r.RouteEntryType, r.MaxResult = table, "Custom", requests.NewInteger(page)
	for {
		answer := testkit.Must(a.vpc.DescribeRouteEntryList(r))(a.t)
		for _, e := range answer.RouteEntrys.RouteEntry {
			all = append(all, e.DestinationCidrBlock+" "+e.Status)
		}
		if answer.NextToken == "" {
			return all
		}
		r.NextToken = answer.NextToken
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	n := testkit.Must(a.vpc.DescribeVpcs(vpcapi.CreateDescribeVpcsRequest()))(t).Vpcs.Vpc[0]
	wantEqual(t, "vpc", []any{n.VpcId, n.CidrBlock, n.RouterTableIds.RouterTableIds, n.VSwitchIds.VSwitchId},
		[]any{"vpc-emulator", "10.0.0.0/8", []string{table}, []string{"vsw-a", "vsw-b"}})
	get := vpcapi.CreateDescribeVpcAttributeRequest()
	get.VpcId = "vpc-emulator"
	wantEqual(t, "attribute", testkit.Must(a.vpc.DescribeVpcAttribute(get))(t).CidrBlock, "10.0.0.0/8")
	get.VpcId = "vpc-none"
	_, err := a.vpc.DescribeVpcAttribute(get)
	wantCode(t, err, "InvalidVpcId.NotFound", 404)

	a.put("i-1", emulator.InstanceSpec{})
	sw := vpcapi.CreateDescribeVSwitchesRequest()
	sw.VSwitchId = "vsw-a"
	v := testkit.Must(a.vpc.DescribeVSwitches(sw))(t).VSwitches.VSwitch[0]
	wantEqual(t, "vSwitch", []any{v.ZoneId, v.CidrBlock, v.VpcId, v.AvailableIpAddressCount, v.RouteTable.RouteTableId},
		[]any{"cn-hangzhou-a", "10.1.0.0/16", "vpc-emulator", int64(65536 - 4 - 1), table})
	tables := vpcapi.CreateDescribeRouteTableListRequest()
	tables.VpcId = "vpc-emulator"
	list := testkit.Must(a.vpc.DescribeRouteTableList(tables))(t)
	wantEqual(t, "tables", []any{list.TotalCount, list.RouterTableList.RouterTableListType[0].RouteTableType}, []any{1, "System"})
}

func TestRouteEntry(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	id := testkit.Must(a.createRoute("10.244.0.0/24", "i-1"))(t)
	wantEqual(t, "routes", a.routes(10), []string{"10.244.0.0/24 Available"})
	tests := []struct {
		name, cidr, nextHop, code string
		status                    int
	}{
		{"duplicate", "10.244.0.0/24", "i-1", "InvalidCIDRBlock.Duplicate", 400},
		{"vSwitch", "10.1.0.0/16", "i-1", "InvalidCidrBlock", 400},
		{"inside a vSwitch", "10.2.3.0/24", "i-1", "InvalidCidrBlock", 400},
		{"around a vSwitch", "10.0.0.0/12", "i-1", "InvalidCidrBlock", 400},
		{"the cloud's own", "100.64.3.0/24", "i-1", "InvalidCidrBlock", 400},
		{"around the cloud's own", "100.0.0.0/8", "i-1", "InvalidCidrBlock", 400},
		{"malformed", "10.244.0.0", "i-1", "InvalidCidrBlock.Malformed", 400},
		{"host bits", "10.244.9.1/24", "i-1", "InvalidCidrBlock.Malformed", 400},
		{"unknown next hop", "10.244.1.0/24", "i-none", "InvalidNextHopId.NotFound", 404},
	}
	for _, test := range tests {
		_, err := a.createRoute(test.cidr, test.nextHop)
		t.Run(test.name, func(t *testing.T) { wantCode(t, err, test.code, test.status) })
	}
	remove := vpcapi.CreateDeleteRouteEntryRequest()
	remove.RouteEntryId = id
	testkit.Must(a.vpc.DeleteRouteEntry(remove))(t)
	_, err := a.vpc.DeleteRouteEntry(remove)
	wantCode(t, err, "InvalidRouteEntryId.NotFound", 400)
	// A request of the SDK keeps the parameters of its first use, so each case has its own.
	byCIDR := vpcapi.CreateDeleteRouteEntryRequest()
	byCIDR.RouteTableId, byCIDR.DestinationCidrBlock, byCIDR.NextHopId = table, "10.244.0.0/24", "i-1"
	_, err = a.vpc.DeleteRouteEntry(byCIDR)
	wantCode(t, err, "InvalidRouteEntry.NotFound", 400)
}

func TestRouteBatches(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Quotas.RouteEntriesPerTable = 60
	a := newAccount(t, emulator.Options{Config: config})
	a.put("i-1", emulator.InstanceSpec{})
	var cidrs []string
	for i := range 50 {
		cidrs = append(cidrs, fmt.Sprintf("10.244.%d.0/24", i))
	}
	made := testkit.Must(a.createRoutes("i-1", cidrs...))(t)
	wantEqual(t, "counts", []int{made.SuccessCount, made.FailedCount, len(made.RouteEntryIds)}, []int{50, 0, 50})
	wantEqual(t, "pages of 7", len(a.routes(7)), 50)

	mixed := testkit.Must(a.createRoutes("i-1", "10.244.0.0/24", "10.244.100.0/24", "10.1.0.0/24"))(t)
	wantEqual(t, "partial failure", []int{mixed.SuccessCount, mixed.FailedCount}, []int{1, 2})
	failed := mixed.FailedRouteEntries[0]
	wantEqual(t, "failed item", []string{failed.DstCidrBlock, failed.NextHop, failed.FailedCode},
		[]string{"10.244.0.0/24", "i-1", "VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE"})
	_, err := a.createRoutes("i-1", append(cidrs, "10.244.101.0/24")...)
	wantCode(t, err, "InvalidParameter", 400)

	gone := testkit.Must(a.deleteRoutes("i-1", "10.244.0.0/24", "10.244.200.0/24"))(t)
	wantEqual(t, "deleted", []any{gone.SuccessCount, gone.FailedCount, gone.FailedRouteEntries[0].FailedCode},
		[]any{1, 1, "VPC_ROUTER_ENTRY_NOT_EXIST"})

	var more []string
	for i := range 11 {
		more = append(more, fmt.Sprintf("10.245.%d.0/24", i))
	}
	over := testkit.Must(a.createRoutes("i-1", more...))(t)
	wantEqual(t, "quota", []any{over.SuccessCount, over.FailedRouteEntries[0].FailedCode}, []any{10, "QuotaExceeded"})

	list := vpcapi.CreateDescribeRouteEntryListRequest()
	list.RouteTableId, list.MaxResult = table, requests.NewInteger(501)
	_, err = a.vpc.DescribeRouteEntryList(list)
	wantCode(t, err, "InvalidParameter", 400)
	unknown := vpcapi.CreateDescribeRouteEntryListRequest()
	unknown.RouteTableId = "vtb-none"
	_, err = a.vpc.DescribeRouteEntryList(unknown)
	wantCode(t, err, "InvalidRouteTable.NotFound", 400)
}

func TestRoutesSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: 3 * time.Second})
		a.put("i-1", emulator.InstanceSpec{})
		testkit.Must(a.createRoute("10.244.0.0/24", "i-1"))(t)
		wantEqual(t, "pending", a.routes(10), []string{"10.244.0.0/24 Pending"})
		_, err := a.createRoute("10.244.1.0/24", "i-1")
		wantCode(t, err, "IncorrectRouteEntryStatus", 400)
		_, err = a.createRoute("10.244.1.0/24", "i-1")
		wantCode(t, err, "IncorrcetRouteEntryStatus", 400)
		time.Sleep(3 * time.Second)
		testkit.Must(a.createRoutes("i-1", "10.244.1.0/24"))(t)
		_, err = a.createRoutes("i-1", "10.244.2.0/24")
		wantCode(t, err, "TaskConflict", 400)
		time.Sleep(3 * time.Second)
		testkit.Must(a.deleteRoutes("i-1", "10.244.0.0/24"))(t)
		wantEqual(t, "deleting", a.routes(10), []string{"10.244.0.0/24 Deleting", "10.244.1.0/24 Available"})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		wantEqual(t, "gone", a.routes(10), []string{"10.244.1.0/24 Available"})
	})
}

func TestBatchesInFlightConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Latency: time.Second})
		other := &account{Emulator: a.Emulator, t: t}
		other.connect("emulator.test", direct{a.Handler()})
		a.put("i-1", emulator.InstanceSpec{})
		first := make(chan error)
		go func() {
			_, err := a.createRoutes("i-1", "10.244.0.0/24")
			first <- err
		}()
		time.Sleep(time.Second / 2)
		_, err := other.createRoutes("i-1", "10.244.1.0/24")
		wantCode(t, err, "TaskConflict", 400)
		testkit.Must(0, <-first)(t)
		testkit.Must(other.createRoutes("i-1", "10.244.1.0/24"))(t)
	})
}

func TestRouteTokenWhilePending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: time.Minute})
		a.put("i-1", emulator.InstanceSpec{})
		create := func(cidr string) (*vpcapi.CreateRouteEntryResponse, error) {
			r := vpcapi.CreateCreateRouteEntryRequest()
			r.RouteTableId, r.DestinationCidrBlock, r.NextHopId, r.ClientToken = table, cidr, "i-1", "token"
			return a.vpc.CreateRouteEntry(r)
		}
		first := testkit.Must(create("10.244.0.0/24"))(t).RouteEntryId
		wantEqual(t, "repeated", testkit.Must(create("10.244.0.0/24"))(t).RouteEntryId, first)
		_, err := create("10.244.1.0/24")
		wantCode(t, err, "IdempotentParameterMismatch", 400)
	})
}
