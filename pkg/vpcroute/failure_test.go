package vpcroute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func entriesOf(entries ...alicloud.RouteEntry) []alicloud.RouteEntry { return entries }

// TestFailures fails every write of a change in every way, with and without the process dying of it. The next passes
// must end in the wanted routes, leak nothing, and then write nothing.
func TestFailures(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"busy":             `"code":"TaskConflict","status":400`,
		"entry busy":       `"code":"IncorrcetRouteEntryStatus","status":400`,
		"vpc busy":         `"code":"IncorrectVpcStatus","status":400`,
		"operation busy":   `"code":"OperationConflict","status":400`,
		"last token":       `"code":"LastTokenProcessing","status":400`,
		"distributed lock": `"code":"OperationFailed.DistibuteLock","status":400`,
		"system busy":      `"code":"SystemBusy","status":449`,
		"throttled":        `"code":"Throttling.User","status":400`,
		"refused":          `"code":"InvalidParameter","status":400`,
		"forbidden":        `"code":"Forbidden.RAM","status":403`,
		"quota":            `"code":"QuotaExceeded","status":400`,
		"internal":         `"code":"InternalError","status":500`,
		"request lost":     `"drop":"before"`,
		"answer lost":      `"drop":"after"`,

		"entry busy, spelled right": `"code":"IncorrectRouteEntryStatus","status":400`,
		"route entry busy":          `"code":"IncorrectStatus.VpcRouteEntry","status":400`,
		"table busy":                `"code":"IncorrectStatus.RouteTableStatus","status":400`,
		"instance busy":             `"code":"IncorrectInstanceStatus","status":400`,
		"vpc system busy":           `"code":"VpcSystemBusy","status":400`,
		"conflict":                  `"code":"InvalidOperation.Conflict","status":409`,
		"flow control":              `"code":"Throttling","status":400`,
		"auth":                      `"code":"InvalidSecurityToken.Expired","status":403`,
		"duplicate":                 `"code":"InvalidCIDRBlock.Duplicate","status":400`,

		// HTTP 200, and some entries of the batch have failed.
		"some entries busy":       `"failItems":3`,
		"some entries refused":    `"failItems":3,"code":"InvalidParameter"`,
		"some entries over quota": `"failItems":3,"code":"QuotaExceeded"`,
		"some entries duplicates": `"failItems":3,"code":"VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE"`,
		"some entries not there":  `"failItems":3,"code":"VPC_ROUTER_ENTRY_NOT_EXIST"`,
		"all entries refused":     `"failItems":50,"code":"InvalidParameter"`,
	}
	for kind, fault := range kinds {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, process dies %v", kind, dies), func(t *testing.T) {
				t.Parallel()
				for write := range 4 { // the change needs 1 deletion and 2 creations
					synctest.Test(t, func(t *testing.T) { playFailure(t, fault, write, dies) })
				}
			})
		}
	}
}

func playFailure(t *testing.T, fault string, write int, dies bool) {
	t.Helper()
	a := newAccount(t, emulator.Options{Settle: 300 * time.Millisecond})
	a.put(80)
	c := newCluster(t, a)
	c.stubborn = true
	nodes, want := nodesOf(10)
	c.set(nodes...)
	c.converge(time.Minute)
	c.unset(nodes[0])
	c.set(nodeOf(1, withCIDR(cidrOf(2))), nodeOf(2, withCIDR(cidrOf(1))))
	delete(want, cidrOf(0))
	want[cidrOf(1)], want[cidrOf(2)] = "i-2", "i-1"
	var more []*corev1.Node
	for i := 10; i < 65; i++ {
		more = append(more, nodeOf(i))
		want[cidrOf(i)] = fmt.Sprintf("i-%d", i)
	}
	c.set(more...)

	a.Fault(fmt.Sprintf(`{"action":"*","kind":"write","after":%d,"times":1,%s}`, write, fault))
	for range 3 {
		next, err := c.pass(t.Context())
		if err == nil {
			time.Sleep(min(time.Until(next), time.Second))
		}
	}
	if dies {
		c.restart()
	}
	c.converge(15 * time.Minute)
	time.Sleep(time.Second) // for deletions to settle
	c.wantRoutes(testTable, want)
	if _, no := c.available(); len(no) != 0 {
		t.Errorf("write %d: nodes without network: %v", write, no)
	}
}

// TestPartialFailure: of a batch of 50 the cloud refuses three entries. The others are done with that one call, their nodes have a network,
// and only the three are tried again.
func TestPartialFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code   string
		failed int // nodes with an event about the failure
	}{"busy": {code: "VPC_ROUTE_ENTRY_STATUS_ERROR"}, "refused": {code: "InvalidParameter", failed: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(50)
				c := newCluster(t, a)
				nodes, want := nodesOf(50)
				c.set(nodes...)
				a.Fault(fmt.Sprintf(`{"action":"CreateRouteEntries","failItems":3,"code":%q,"times":3}`, test.code))
				c.stubborn = true
				c.converge(15 * time.Minute)
				var sizes []int
				for _, call := range a.Calls(0) {
					if call.Action == "CreateRouteEntries" {
						sizes = append(sizes, strings.Count(fmt.Sprint(call.Parameters), "DstCidrBlock"))
					}
				}
				if !slices.Equal(sizes, []int{50, 3, 3, 3}) {
					t.Errorf("entries of the batches: %v, want 50 and three times 3", sizes)
				}
				if events := c.emitted(); events[reasonCreated] != 50 || events[reasonCreateFailed] != test.failed {
					t.Errorf("events %v, want 50 of creations and %d of failures", events, test.failed)
				}
				c.wantRoutes(testTable, want)
				if _, no := c.available(); len(no) != 0 {
					t.Errorf("nodes without network: %v", no)
				}
			})
		})
	}
}

// TestReadFailures: a table that cannot be read, or only in part, changes nothing.
func TestReadFailures(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"error":      `{"action":"DescribeRouteEntryList","code":"ServiceUnavailable","status":503,"times":5}`,
		"lost":       `{"action":"DescribeRouteEntryList","drop":"after","times":5}`,
		"page lost":  `{"action":"DescribeRouteEntryList","drop":"after","after":1,"times":1}`,
		"forbidden":  `{"action":"DescribeRouteEntryList","code":"Forbidden.RAM","status":403}`,
		"throttled":  `{"action":"DescribeRouteEntryList","code":"Throttling.User","times":1}`,
		"table list": `{"action":"DescribeRouteTableList","code":"ServiceUnavailable","status":503,"times":5}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, c, _, want := settled(t, 150)
				c.restart()
				before := a.Last()
				a.Fault(fault)
				c.converge(10 * time.Minute)
				time.Sleep(waits.RouteRefused)
				c.converge(time.Minute)
				if n := a.Count(before, writes...); n != 0 {
					t.Errorf("%d writes after a failed read", n)
				}
				c.wantRoutes(testTable, want)
			})
		})
	}
}
