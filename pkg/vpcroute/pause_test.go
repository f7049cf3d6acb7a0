package vpcroute

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// TestPausedRoutes: while everything is paused, no route is created or deleted and no check is switched off; an event says what is not
// done, and new nodes stay without network. After the pause everything is made up for.
func TestPausedRoutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		for i := range 3 {
			config.Instances = append(config.Instances,
				cloud.InstanceConfig{ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: true})
		}
		a := newAccount(t, emulator.Options{Config: config})
		var paused atomic.Bool
		c := newCluster(t, a, func(o *Options) { o.Paused, o.SkipSourceDestCheck = paused.Load, false })
		nodes, routes := nodesOf(3)
		c.set(nodes[:2]...)
		c.converge(time.Minute)
		if err := c.checkAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := map[string]string{cidrOf(0): routes[cidrOf(0)], cidrOf(1): routes[cidrOf(1)]}

		paused.Store(true)
		c.unset(nodes[0])
		c.set(nodes[2])
		start := a.Last()
		for range 10 {
			if _, err := c.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.checkAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if n := a.Count(start, "DescribeNetworkInterfaces"); n == 0 {
			t.Error("the check of the new node was not read")
		}
		if n := a.Count(start, writes...); n > 0 {
			t.Errorf("%d writes while paused", n)
		}
		if diff := cmp.Diff(before, a.Routes(testTable)); diff != "" {
			t.Errorf("routes while paused (-want +got):\n%s", diff)
		}
		if got := c.emitted()[reasonPaused]; got == 0 {
			t.Error("no event says what is not done")
		}
		if _, without := c.available(); !cmp.Equal(without, []string{"node-2"}) {
			t.Errorf("nodes without network: %v, want node-2", without)
		}
		paused.Store(false)
		c.Resync()
		c.converge(time.Minute)
		if diff := cmp.Diff(map[string]string{cidrOf(1): routes[cidrOf(1)], cidrOf(2): routes[cidrOf(2)]}, a.Routes(testTable)); diff != "" {
			t.Errorf("routes after the pause (-want +got):\n%s", diff)
		}
	})
}
