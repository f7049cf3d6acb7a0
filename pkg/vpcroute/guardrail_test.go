package vpcroute

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestQuota: the table is full. One event says so, the cloud is not flooded, and room that appears is used.
func TestQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.Quotas.RouteEntriesPerTable = 20
		a := newAccount(t, emulator.Options{Config: config})
		a.put(300)
		c := newCluster(t, a, func(o *Options) { o.Quota = func() Quota { return Quota{Value: 20, Origin: "configured"} } })
		nodes, _ := nodesOf(300)
		c.set(nodes...)
		for range 20 {
			c.kickPass()
			time.Sleep(time.Second)
		}
		if yes, no := c.available(); len(yes) != 20 || len(no) != 280 {
			t.Errorf("%d nodes have a network and %d have not, want 20 and 280", len(yes), len(no))
		}
		if n := a.Count(0, "CreateRouteEntries"); n > 2 {
			t.Errorf("%d batches to a table that the first one fills", n)
		}
		before := a.Last()
		for range 10 {
			c.kickPass()
		}
		if n := a.Count(before); n != 0 {
			t.Errorf("ten events made %d calls to a full table", n)
		}
		if n := c.emitted()[reasonQuota]; n != 2 {
			t.Errorf("%d events about the quota, want one before the limit and one at it", n)
		}
		before = a.Last()
		routed := slices.Sorted(maps.Values(a.Routes(testTable)))
		for _, node := range nodes {
			if slices.Contains(routed[:5], strings.TrimPrefix(node.Spec.ProviderID, "cn-hangzhou.")) {
				c.unset(node)
			}
		}
		for range 20 {
			c.kickPass()
			time.Sleep(time.Second)
		}
		if n := len(a.Routes(testTable)); n != 20 {
			t.Errorf("%d routes after five nodes went, want the table full again", n)
		}
		if n := a.Count(before, writes...); n > 3 {
			t.Errorf("%d writes to use the room that five nodes left", n)
		}
		time.Sleep(waits.RouteRefused)
		before = a.Last()
		c.kickPass()
		if n := a.Count(before, "CreateRouteEntries"); n != 1 {
			t.Errorf("%d batches after a while, want one to see whether the quota was raised", n)
		}
	})
}

// kickPass makes one pass, as an event does.
func (c *cluster) kickPass() {
	c.t.Helper()
	if _, err := c.pass(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

// TestBadRange: a pod CIDR that the cloud would refuse is not asked for and does not hold up the others.
func TestBadRange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(5)
		clusterCIDRs, err := ParseClusterCIDRs("10.0.0.0/9,100.64.0.0/10,10.244.0.0/16")
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(t, a, func(o *Options) { o.Config.ClusterCIDRs = clusterCIDRs })
		c.set(nodeOf(0), nodeOf(1, withCIDR("10.1.3.0/24")), nodeOf(2, withCIDR("100.64.2.0/24")))
		c.converge(time.Minute)
		c.wantRoutes(testTable, map[string]string{cidrOf(0): "i-0"})
		for _, call := range a.Calls(0) {
			if call.Code != "" {
				t.Errorf("%s was refused with %s", call.Action, call.Code)
			}
		}
		if n := c.emitted()[reasonInvalidCIDR]; n != 2 {
			t.Errorf("%d events about pod CIDRs, want 2", n)
		}
		if _, no := c.available(); !slices.Equal(no, []string{"node-1", "node-2"}) {
			t.Errorf("nodes without network: %v, want node-1 and node-2", no)
		}
	})
}

// TestOneBadEntry: the cloud refuses one route of a batch; the others are made and the one is tried again.
func TestOneBadEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(30)
		a.ReleaseInstance("i-7")
		c := newCluster(t, a)
		nodes, want := nodesOf(30)
		c.set(nodes...)
		for range 5 {
			c.kickPass()
		}
		delete(want, cidrOf(7))
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
		if n := c.emitted()[reasonCreateFailed]; n != 1 {
			t.Errorf("%d events about the refused route, want 1", n)
		}
		if _, err := a.PutInstance("i-7", emulator.InstanceSpec{}); err != nil {
			t.Fatal(err)
		}
		c.converge(5 * time.Minute)
		want[cidrOf(7)] = "i-7"
		c.wantRoutes(testTable, want)
	})
}

func TestNodeWithoutPodCIDR(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, a)
		c.set(nodeOf(0, withCIDR(), func(node *corev1.Node) { node.CreationTimestamp = metav1.Now() }))
		c.kickPass()
		if events := c.emitted(); len(events) != 0 {
			t.Errorf("events about a node that just joined: %v", events)
		}
		c.converge(time.Minute)
		if events := c.emitted(); events[reasonNoCIDR] != 1 {
			t.Errorf("events = %v, want one %s", events, reasonNoCIDR)
		}
	})
}
