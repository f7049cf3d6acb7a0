package emulator_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func (a *account) fault(body string) {
	a.t.Helper()
	status, answer := send(a.Emulator, "POST", "/_emulator/faults", body)
	wantEqual(a.t, answer, status, 204)
}

func TestPartialBatchFailure(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	a.fault(`{"action":"CreateRouteEntries","failItems":1}`)
	made := testkit.Must(a.createRoutes("i-1", "10.244.0.0/24", "10.244.1.0/24"))(t)
	wantEqual(t, "first",
		[]any{made.SuccessCount, made.FailedCount, made.FailedRouteEntries[0].DstCidrBlock, made.FailedRouteEntries[0].FailedCode},
		[]any{1, 1, "10.244.0.0/24", "VPC_ROUTE_ENTRY_STATUS_ERROR"})
	made = testkit.Must(a.createRoutes("i-1", "10.244.0.0/24"))(t)
	wantEqual(t, "second", made.SuccessCount, 1)
	a.fault(`{"action":"DeleteRouteEntries","failItems":2,"code":"Odd"}`)
	gone := testkit.Must(a.deleteRoutes("i-1", "10.244.0.0/24", "10.244.1.0/24"))(t)
	wantEqual(t, "deletes", []any{gone.FailedCount, gone.FailedRouteEntries[0].FailedCode}, []any{2, "Odd"})
}

func TestStaleLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{})
		a.fault(`{"action":"DescribeLoadBalancers","stale":"5s","times":0}`)
		id := a.newLB()
		total := func() int {
			return testkit.Must(a.slb.DescribeLoadBalancers(slbapi.CreateDescribeLoadBalancersRequest()))(t).TotalCount
		}
		wantEqual(t, "lag", total(), 0)
		wantEqual(t, "single reads do not lag", a.describeLB(id).LoadBalancerId, id)
		time.Sleep(5 * time.Second)
		wantEqual(t, "caught up", total(), 1)
	})
}

func TestRandomFaultsRepeat(t *testing.T) {
	t.Parallel()
	run := func(seed int) string {
		a := newAccount(t, emulator.Options{})
		a.fault(fmt.Sprintf(`{"action":"*","code":"SystemBusy","times":0,"probability":0.3,"seed":%d}`, seed))
		var outcomes string
		for range 40 {
			_, err := a.call("slb", "DescribeLoadBalancers", nil)
			outcomes += map[bool]string{true: ".", false: "x"}[err == nil]
		}
		return outcomes
	}
	first := run(7)
	wantEqual(t, "same seed", run(7), first)
	if other := run(8); other == first {
		t.Errorf("another seed gives the same faults %s", other)
	}
}

func TestLoadBalancersPerServer(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Quotas.LBsPerInstance = 2
	a := newAccount(t, emulator.Options{Config: config})
	a.put("i-1", emulator.InstanceSpec{})
	const backend = `[{"ServerId":"i-1","Port":80}]`
	one, two, three := a.newGroup(a.newLB(), backend), a.newGroup(a.newLB(), backend), a.newGroup(a.newLB(), "")
	wantCode(t, a.addBackends(three, backend), "QuotaExceeded.AttachedLoadBalancers", 400)
	testkit.Must(0, a.addBackends(two, `[{"ServerId":"i-1","Port":81}]`))(t)
	testkit.Must(0, a.deleteGroup(one))(t)
	testkit.Must(0, a.addBackends(three, backend))(t)
}
