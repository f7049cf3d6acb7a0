package vpcroute

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// TestSourceDestCheck: one read per hundred nodes and one write per interface whose check is on; a failure is one event
// and tried again, and do not hold up the others.
func TestSourceDestCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		for i := range 100 {
			config.Instances = append(config.Instances, cloud.InstanceConfig{
				ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: i < 30,
			})
		}
		a := newAccount(t, emulator.Options{Config: config})
		c := newCluster(t, a)
		nodes, _ := nodesOf(100)
		c.set(nodes...)
		instances := c.instances()

		a.Fault(`{"action":"ModifyNetworkInterfaceAttribute","code":"InvalidOperation.Conflict","status":400,"times":2}`)
		c.checks.want(instances)
		if err := c.checkAll(t.Context()); err == nil {
			t.Error("two failed writes are no error")
		}
		if n := a.Count(0, "DescribeNetworkInterfaces"); n != 1 {
			t.Errorf("%d reads for 100 nodes, want 1", n)
		}
		if n := a.Count(0, "ModifyNetworkInterfaceAttribute"); n != 30 {
			t.Errorf("%d writes, want one for each of the 30 checks that are on", n)
		}
		if n := c.emitted()[reasonSourceDestErr]; n != 2 {
			t.Errorf("%d events, want one for each of the 2 nodes", n)
		}

		before := a.Last()
		if err := c.checkAll(t.Context()); err != nil {
			t.Errorf("second attempt: %v", err)
		}
		if n := a.Count(before, "ModifyNetworkInterfaceAttribute"); n != 2 {
			t.Errorf("%d writes in the second attempt, want the 2 that failed", n)
		}
		before = a.Last()
		c.checks.want(instances)
		if err := c.checkAll(t.Context()); err != nil || a.Count(before) != 0 {
			t.Errorf("with nothing left to do: %v, %d calls", err, a.Count(before))
		}
	})
}

// checkedCluster has so many nodes, all with their source/destination check on, and wants it off.
func checkedCluster(t *testing.T, n int, config *emulator.Config) *cluster {
	t.Helper()
	for i := range n {
		config.Instances = append(config.Instances, cloud.InstanceConfig{
			ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: true,
		})
	}
	c := newCluster(t, newAccount(t, emulator.Options{Config: config}))
	nodes, _ := nodesOf(n)
	c.set(nodes...)
	instances := c.instances()
	c.checks.want(instances)
	return c
}

// instances returns the nodes of the cache by instance.
func (c *cluster) instances() map[string]*corev1.Node {
	c.t.Helper()
	d, err := c.writer.desired(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return d.instances
}

// finishChecks makes passes until nothing is left to do, with the pauses that the worker makes at least. The worker itself
// logs errors through a clock that does not stand a bubble.
func (c *cluster) finishChecks(within time.Duration) {
	c.t.Helper()
	for start := time.Now(); c.unchecked() > 0; time.Sleep(readEvery) {
		if time.Since(start) > within {
			c.t.Fatalf("%d checks are on after %s", c.unchecked(), within)
		}
		if err := c.checkAll(c.t.Context()); err != nil {
			c.t.Log(err)
		}
	}
}

// TestSourceDestQuota: no document says how many calls the cloud admits, so both a generous and a mean one must do.
func TestSourceDestQuota(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		quota   int // a minute; 0 is none
		within  time.Duration
		refused int
	}{{within: 90 * time.Second}, {quota: 150, within: 5 * time.Minute, refused: 2}} {
		t.Run(fmt.Sprint(test.quota), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := cloud.DefaultConfig()
				if test.quota > 0 {
					config.RateLimits = map[string]cloud.RateLimitConfig{"ecs:ModifyNetworkInterfaceAttribute": {Calls: test.quota}}
				}
				c := checkedCluster(t, 400, config)
				c.finishChecks(test.within)
				writes := c.account.Count(0, "ModifyNetworkInterfaceAttribute")
				if writes > 400+test.refused {
					t.Errorf("%d calls for 400 interfaces, want at most %d refused", writes, test.refused)
				}
			})
		})
	}
}

// TestSourceDestForbidden: a key without the permission is reported after one call, not after one for each node, and the
// permission is used once it is there.
func TestSourceDestForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := checkedCluster(t, 100, cloud.DefaultConfig())
		c.account.Fault(`{"action":"ModifyNetworkInterfaceAttribute","code":"Forbidden.RAM","status":403,"times":3}`)
		c.finishChecks(time.Minute)
		if n := c.account.Count(0, "ModifyNetworkInterfaceAttribute"); n != 103 {
			t.Errorf("%d calls, want 3 that were refused and one for each of 100 interfaces", n)
		}
		if n := c.emitted()[reasonSourceDestErr]; n == 0 || n > 3 {
			t.Errorf("%d events, want one for each refusal at most", n)
		}
	})
}
