package emulated_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	sdkerrors "github.com/aliyun/alibaba-cloud-sdk-go/sdk/errors"
	"github.com/aliyun/alibaba-cloud-sdk-go/services/slb"
	"github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/emulated"
)

// The SDK fills its package-level endpoint maps with the first client, without a lock.
func init() {
	slb.GetEndpointMap()
	vpc.GetEndpointMap()
}

func clientOf(t *testing.T, a *emulated.Account) *slb.Client {
	t.Helper()
	client, err := slb.NewClientWithOptions(a.Region, sdk.NewConfig().WithScheme("HTTP"),
		credentials.NewAccessKeyCredential(a.AccessKeyID, a.AccessKeySecret))
	if err != nil {
		t.Fatal(err)
	}
	client.Domain = a.Host()
	return client
}

func count(t *testing.T, c *slb.Client) int {
	t.Helper()
	answer, err := c.DescribeLoadBalancers(slb.CreateDescribeLoadBalancersRequest())
	if err != nil {
		t.Fatal(err)
	}
	return answer.TotalCount
}

// TestAccount: what a test of another project does with an account.
func TestAccount(t *testing.T) {
	t.Parallel()
	a, other := emulated.Start(t, emulated.Options{}), emulated.Start(t, emulated.Options{})
	c := clientOf(t, a)
	empty := a.Snapshot()
	a.Fault(`{"action":"CreateLoadBalancer","code":"SystemBusy","status":400}`)
	var refused *sdkerrors.ServerError
	if _, err := c.CreateLoadBalancer(slb.CreateCreateLoadBalancerRequest()); !errors.As(err, &refused) ||
		refused.ErrorCode() != "SystemBusy" {
		t.Errorf("under a fault: %v", err)
	}
	a.ClearFaults()
	if _, err := c.CreateLoadBalancer(slb.CreateCreateLoadBalancerRequest()); err != nil {
		t.Fatal(err)
	}
	if n, m := count(t, c), count(t, clientOf(t, other)); n != 1 || m != 0 {
		t.Errorf("%d load balancers, %d in the other account", n, m)
	}
	a.Restore(empty)
	if n := count(t, c); n != 0 {
		t.Errorf("%d load balancers after the snapshot was restored", n)
	}
	a.PutInstance("i-1", `{"InstanceName":"web-1"}`)
	var state struct {
		Instances []struct{ InstanceName string }
	}
	if err := json.Unmarshal(a.State(), &state); err != nil || len(state.Instances) != 1 || state.Instances[0].InstanceName != "web-1" {
		t.Errorf("state %+v, %v", state, err)
	}
	calls := a.Calls()
	if len(calls) != 4 || calls[0].Action != "CreateLoadBalancer" || calls[0].Code != "SystemBusy" || calls[1].Status != 200 {
		t.Errorf("calls %+v", calls)
	}
}

// TestConfigAndClock: a configuration in YAML, quotas, and a clock that is set forward.
func TestConfigAndClock(t *testing.T) {
	t.Parallel()
	a := emulated.Start(t, emulated.Options{Settle: time.Hour, Config: `
region: cn-beijing
accountId: "42"
vpcs: [{id: vpc-1, cidr: 192.168.0.0/16}]
routeTables: [{id: vtb-1, vpcId: vpc-1}]
vSwitches: [{id: vsw-1, vpcId: vpc-1, zoneId: cn-beijing-a, cidr: 192.168.1.0/24}]
accessKeys: [{id: key, secret: secret}]
`})
	if a.Region != "cn-beijing" || a.AccountID != "42" || a.AccessKeyID != "key" || a.AccessKeySecret != "secret" {
		t.Errorf("%+v", a)
	}
	client, err := vpc.NewClientWithOptions(a.Region, sdk.NewConfig().WithScheme("HTTP"), credentials.NewAccessKeyCredential("key", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	client.Domain = a.Host()
	request := vpc.CreateCreateRouteTableRequest()
	request.VpcId, request.RouteTableName = "vpc-1", "slow"
	if _, err := client.CreateRouteTable(request); err != nil {
		t.Fatal(err)
	}
	status := func() string {
		list := vpc.CreateDescribeRouteTableListRequest()
		list.VpcId, list.RouteTableName = "vpc-1", "slow"
		answer, err := client.DescribeRouteTableList(list)
		if err != nil || len(answer.RouterTableList.RouterTableListType) != 1 {
			t.Fatalf("%v, %v", answer, err)
		}
		return answer.RouterTableList.RouterTableListType[0].Status
	}
	if got := status(); got != "Pending" {
		t.Errorf("at first %s", got)
	}
	a.Advance(2 * time.Hour)
	if got := status(); got != "Available" {
		t.Errorf("later %s", got)
	}
	a.Change(`{"quotas":{"loadBalancers":1}}`)
}

// TestEndDuringCall: a test ends at once, although a fault delays a call that nobody waits for anymore.
func TestEndDuringCall(t *testing.T) {
	t.Parallel()
	const delay = 4 * time.Minute
	start := time.Now()
	t.Run("test of somebody else", func(t *testing.T) { //nolint:paralleltest // its end is waited for
		a := emulated.Start(t, emulated.Options{})
		a.Fault(`{"action":"*","latency":"` + delay.String() + `"}`)
		request := slb.CreateDescribeLoadBalancersRequest()
		request.SetReadTimeout(100 * time.Millisecond)
		if answer, err := clientOf(t, a).DescribeLoadBalancers(request); err == nil {
			t.Errorf("a call that takes %s: %v", delay, answer)
		}
	})
	if d := time.Since(start); d >= delay/2 {
		t.Errorf("the test took %s", d)
	}
}
