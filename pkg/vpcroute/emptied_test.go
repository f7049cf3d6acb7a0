package vpcroute

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestEmptiedAPIServer: an API server that shows no node at all and then one after the other costs no working route, down to the
// last one, of clusters of all sizes. Routes of instances that are gone go once there is a node again to compare with.
func TestEmptiedAPIServer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 20} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d nodes, restart %t", n, restart), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { playEmptied(t, n, restart) })
			})
		}
	}
}

func playEmptied(t *testing.T, n int, restart bool) {
	t.Helper()
	a, c, nodes, want := settled(t, n)
	c.unset(nodes...)
	if restart {
		c.restart()
	}
	before := a.Last()
	c.passFor(time.Minute)
	for _, node := range nodes[:n-1] {
		c.set(node)
		c.passFor(waits.RouteAtStart + time.Minute)
	}
	if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
		t.Fatalf("routes (-want +got):\n%s", diff)
	}
	if n := a.Count(before, writes...); n != 0 {
		t.Errorf("%d writes while nothing was to be done", n)
	}
	a.ReleaseInstance(fmt.Sprintf("i-%d", n-1))
	delete(want, cidrOf(n-1))
	c.passFor(2 * defaultPeriod)
	c.wantRoutes(testTable, want)
}

// TestNodesGoneOneByOne: nodes that go within a moment are too many, also when the first pass sees only one to be gone.
func TestNodesGoneOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, c, nodes, want := settled(t, 20)
		for _, node := range nodes[:10] {
			c.unset(node)
			c.passFor(100 * time.Millisecond)
		}
		c.passFor(defaultPeriod)
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
	})
}

// TestUnreadTableKeepsRoutesWithheld: routes that stay because too many have no node stay also after a pass that could not read
// their table.
func TestUnreadTableKeepsRoutesWithheld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, c, nodes, want := settled(t, 20)
		c.unset(nodes[:10]...)
		c.passFor(time.Minute)
		a.Fault(`{"action":"DescribeRouteEntryList","times":0,"code":"ServiceUnavailable","status":503}`)
		c.passFor(2 * defaultPeriod)
		c.set(nodes[1:10]...) // all but one are back
		c.passFor(time.Minute)
		a.ClearFaults()
		c.passFor(2 * defaultPeriod)
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
	})
}
