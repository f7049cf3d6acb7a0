package vpcroute

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// TestSourceDestCheck: one read per hundred nodes and one write per interface whose check is on; failures are told once
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
		v, err := c.writer.view(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		a.fault(`{"action":"ModifyNetworkInterfaceAttribute","code":"InvalidOperation.Conflict","status":400,"times":2}`)
		c.checks.want(v)
		if err := c.checks.pass(t.Context()); err == nil {
			t.Error("two failed writes are no error")
		}
		if n := a.count(0, "DescribeNetworkInterfaces"); n != 1 {
			t.Errorf("%d reads for 100 nodes, want 1", n)
		}
		if n := a.count(0, "ModifyNetworkInterfaceAttribute"); n != 30 {
			t.Errorf("%d writes, want one for each of the 30 checks that are on", n)
		}
		if n := c.told()[reasonSourceDestErr]; n != 2 {
			t.Errorf("%d events, want one for each of the 2 nodes", n)
		}

		before := a.last()
		if err := c.checks.pass(t.Context()); err != nil {
			t.Errorf("second attempt: %v", err)
		}
		if n := a.count(before, "ModifyNetworkInterfaceAttribute"); n != 2 {
			t.Errorf("%d writes in the second attempt, want the 2 that failed", n)
		}
		before = a.last()
		c.checks.want(v)
		if err := c.checks.pass(t.Context()); err != nil || a.count(before) != 0 {
			t.Errorf("with nothing left to do: %v, %d calls", err, a.count(before))
		}
	})
}
