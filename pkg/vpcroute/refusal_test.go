package vpcroute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestGlobalRefusalIsNotSplit: a refusal that has nothing to do with single entries costs a few calls, not one for each entry.
func TestGlobalRefusalIsNotSplit(t *testing.T) {
	t.Parallel()
	for code, most := range map[string]int{
		"QuotaExceeded": 7, "QuotaExceeded.RouteEntry": 7, "InvalidTimeStamp.Expired": 2, "InvalidRouteTableId.NotFound": 2, "Forbidden.RAM": 2,
		"InvalidVpcId.NotFound": 2,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(200)
				c := newCluster(t, a)
				a.Fault(fmt.Sprintf(`{"action":"CreateRouteEntries","code":%q,"status":400,"times":0}`, code))
				nodes, _ := nodesOf(50)
				c.set(nodes...)
				c.passFor(4 * time.Minute)
				if n := a.Count(0, "CreateRouteEntries"); n > most {
					t.Errorf("%d calls in four minutes, want at most %d", n, most)
				}
			})
		})
	}
}

// TestQuotaOfWholeBatch: where the cloud refuses the whole batch, the room that is left is used all the same.
func TestQuotaOfWholeBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(50)
		c := newCluster(t, a)
		a.Fault(`{"action":"CreateRouteEntries","code":"QuotaExceeded","status":400,"times":2}`) // of 50 and of 25 entries
		nodes, want := nodesOf(50)
		c.set(nodes...)
		c.passFor(10 * time.Second)
		if n := len(a.Routes(testTable)); n == 0 {
			t.Error("no route was made")
		}
		c.passFor(2 * waits.RouteRefused)
		c.wantRoutes(testTable, want)
	})
}

// TestBusyItemsDoNotFlood: entries that stay busy are tried again with growing pauses, and keep no other route waiting.
func TestBusyItemsDoNotFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(60)
		c := newCluster(t, a)
		a.Fault(`{"action":"CreateRouteEntries","failItems":3,"code":"VPC_ROUTE_ENTRY_STATUS_ERROR","times":0}`)
		nodes, _ := nodesOf(50)
		c.set(nodes...)
		c.passFor(2 * time.Minute)
		if n := a.Count(0, "CreateRouteEntries"); n > 10 {
			t.Errorf("%d calls in two minutes", n)
		}
		if yes, no := c.available(); len(yes) != 47 || len(no) != 3 {
			t.Errorf("%d nodes have a network, %d have none, want 47 and 3", len(yes), len(no))
		}
		if n := c.emitted()[reasonCreateFailed]; n != 3 {
			t.Errorf("%d events, want one for each node that waits for long", n)
		}
	})
}

// TestUnroutableNodes: nodes whose instances are not in the VPC cost a few calls per period, whether the cloud refuses their
// entries or the whole batch, and do not keep the others from their routes.
func TestUnroutableNodes(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole batch refused %v", whole), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := cloud.DefaultConfig()
				config.RouteBatchesWhole = whole
				a := newAccount(t, emulator.Options{Config: config})
				a.put(20)
				c := newCluster(t, a)
				nodes, want := nodesOf(120)
				c.set(nodes...)
				for i := 20; i < 120; i++ {
					delete(want, cidrOf(i))
				}
				c.passFor(10 * time.Minute)
				if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
					t.Errorf("routes (-want +got):\n%s", diff)
				}
				before := a.Last()
				c.passFor(time.Hour)
				if n := a.Count(before, "CreateRouteEntries"); n > 3*12 {
					t.Errorf("%d writes in an hour, want at most 3 in 5 minutes", n)
				}
			})
		})
	}
}

// TestDuplicateOfInvisibleEntryIsNotSilent: an entry that no read shows, such as one of a CEN, becomes an event.
func TestDuplicateOfInvisibleEntryIsNotSilent(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE", "Duplicated.VpcNextHop"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(1)
				c := newCluster(t, a)
				a.Fault(fmt.Sprintf(`{"action":"CreateRouteEntries","failItems":1,"code":%q,"times":0}`, code))
				c.set(nodeOf(0))
				c.passFor(time.Hour)
				if n := c.emitted()[reasonConflict]; n != 1 {
					t.Errorf("%d events, want 1", n)
				}
				if n := a.Count(0, "CreateRouteEntries"); n > 15 {
					t.Errorf("%d attempts in an hour", n)
				}
			})
		})
	}
}

// TestEntryOfAnotherTypeIsAConflict: an entry that the list of custom ones leaves out, such as one of a CEN, becomes an event, costs no
// attempt for a period, and keeps no other route waiting.
func TestEntryOfAnotherTypeIsAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(2)
		c := newCluster(t, a)
		cen := nodeOf(cenNode, withProviderID("cn-hangzhou.i-0"))
		c.set(cen, nodeOf(1))
		c.passFor(10 * time.Second)
		var conflict []string
		for len(c.events.Events) > 0 {
			if event := <-c.events.Events; strings.Contains(event, reasonConflict) {
				conflict = append(conflict, event)
			}
		}
		if len(conflict) != 1 || !strings.Contains(conflict[0], "CEN") || !strings.Contains(conflict[0], cen.Spec.PodCIDR) {
			t.Errorf("events %q, want one that names the pod CIDR", conflict)
		}
		if yes, no := c.available(); !slices.Equal(yes, []string{"node-1"}) || !slices.Equal(no, []string{cen.Name}) {
			t.Errorf("with network: %v, without: %v", yes, no)
		}
		before := a.Last()
		c.passFor(time.Hour)
		if n := a.Count(before, "CreateRouteEntries"); n > 13 {
			t.Errorf("%d attempts in an hour, want one in five minutes", n)
		}
		if n := a.Count(before, "DeleteRouteEntries"); n > 0 {
			t.Errorf("%d deletions", n)
		}
	})
}

// TestNodesThatJoinOneByOne: 950 nodes that join while the controller runs fill their batches.
func TestNodesThatJoinOneByOne(t *testing.T) {
	t.Parallel()
	for _, settle := range []time.Duration{0, time.Second} {
		t.Run(settle.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{Settle: settle})
				a.put(1000)
				vSwitches, err := a.Client.DescribeVSwitches(t.Context(), testVPC)
				if err != nil {
					t.Fatal(err)
				}
				c := newCluster(t, a, func(o *Options) { o.VSwitches, o.VSwitchesRead = vSwitches, time.Now() })
				nodes, want := nodesOf(1000)
				c.set(nodes[:50]...)
				c.converge(time.Minute)
				before, start := a.Last(), time.Now()
				for i := 50; i < 1000; i++ {
					c.set(nodeOf(i, uninitialized, withProviderID("")))
				}
				next := time.Now()
				for i := 50; i < 1000; i++ {
					c.set(nodes[i])
					time.Sleep(20 * time.Millisecond)
					if i%5 == 0 || !time.Now().Before(next) {
						if next, err = c.pass(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				c.converge(time.Minute)
				if n := a.Count(before); n > 25 {
					t.Errorf("%d calls for 950 nodes, want at most 25", n)
				}
				t.Logf("%d calls, %s", a.Count(before), time.Since(start))
				if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
					t.Errorf("routes (-want +got):\n%s", diff)
				}
			})
		})
	}
}
