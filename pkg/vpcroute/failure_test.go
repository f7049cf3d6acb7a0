package vpcroute

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
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
		next, err := c.pass.run(t.Context())
		if err == nil {
			time.Sleep(min(time.Until(next), time.Second))
		}
	}
	if dies {
		c.restart()
	}
	c.converge(15 * time.Minute)
	c.wantRoutes(testTable, want)
	if _, no := c.available(); len(no) != 0 {
		t.Errorf("write %d: nodes without network: %v", write, no)
	}
}

// TestReadFailures: a table that cannot be read, or only in part, changes nothing.
func TestReadFailures(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"error":      `{"action":"DescribeRouteEntryList","code":"ServiceUnavailable","status":503,"times":5}`,
		"lost":       `{"action":"DescribeRouteEntryList","drop":"after","times":5}`,
		"page lost":  `{"action":"DescribeRouteEntryList","drop":"after","after":1,"times":1}`,
		"forbidden":  `{"action":"DescribeRouteEntryList","code":"Forbidden.RAM","status":403,"times":5}`,
		"throttled":  `{"action":"DescribeRouteEntryList","code":"Throttling.User","times":1}`,
		"table list": `{"action":"DescribeRouteTableList","code":"ServiceUnavailable","status":503,"times":5}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(150)
				c := newCluster(t, a)
				nodes, want := nodesOf(150)
				c.set(nodes...)
				c.converge(time.Minute)
				c.restart()
				before := a.Last()
				a.Fault(fault)
				c.converge(5 * time.Minute)
				if n := a.Count(before, writes...); n != 0 {
					t.Errorf("%d writes after a failed read", n)
				}
				c.wantRoutes(testTable, want)
			})
		})
	}
}
