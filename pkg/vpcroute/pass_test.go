package vpcroute

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// wantRoutes checks the table and that a further pass writes nothing.
func (c *cluster) wantRoutes(table string, want map[string]string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.account.Routes(table)); diff != "" {
		c.t.Errorf("routes of %s (-want +got):\n%s", table, diff)
	}
	before := c.account.Last()
	c.drift = time.Time{}
	c.converge(time.Minute)
	if n := c.account.Count(before, writes...); n != 0 {
		c.t.Errorf("a pass over settled routes made %d writes", n)
	}
}

// TestCalls counts what new nodes, a restart and a periodic pass cost.
func TestCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		nodes, calls int
		settle       time.Duration
	}{
		{nodes: 1, calls: 3}, {nodes: 50, calls: 3}, {nodes: 51, calls: 4}, {nodes: 1000, calls: 35},
		{nodes: 50, calls: 3, settle: time.Second}, {nodes: 300, calls: 13, settle: time.Second}, {nodes: 1000, calls: 35, settle: time.Second},
	} {
		t.Run(fmt.Sprintf("%d nodes, settle %s", test.nodes, test.settle), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{Settle: test.settle})
				a.put(test.nodes)
				vSwitches, err := a.Client.DescribeVSwitches(t.Context(), testVPC) // as the provider has read them at its start
				if err != nil {
					t.Fatal(err)
				}
				c := newCluster(t, a, func(o *Options) { o.VSwitches, o.VSwitchesRead = vSwitches, time.Now() })
				c.converge(time.Minute)
				nodes, routes := nodesOf(test.nodes)
				c.set(nodes...)

				before, start := a.Last(), time.Now()
				c.converge(5 * time.Minute)
				if n := a.Count(before); n > test.calls {
					t.Errorf("%d calls for %d new nodes, want at most %d", n, test.nodes, test.calls)
				}
				batches := (test.nodes + 49) / 50
				took, least := time.Since(start), test.settle*time.Duration(batches)
				if least > 0 && took > least*12/10 {
					t.Errorf("took %s, want at most 1.2 times the %s of the batches", took, least)
				}
				if yes, no := c.available(); len(yes) != test.nodes || len(no) != 0 {
					t.Errorf("%d nodes have a network and %d have not", len(yes), len(no))
				}
				c.wantRoutes(testTable, routes)

				c.restart()
				before = a.Last()
				c.converge(time.Minute)
				if n, pages := a.Count(before), test.nodes/100+1; n > pages+1 {
					t.Errorf("restart: %d calls, want at most %d", n, pages+1)
				}
			})
		})
	}
}

// TestEverything changes all kinds of things at once, in two tables.
func TestEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{Settle: 500 * time.Millisecond})
		a.put(20)
		foreign := map[string]string{"10.244.200.0/28": "i-19", "192.168.0.0/24": "i-0", "0.0.0.0/0": "i-1"}
		a.make("by hand", foreign)
		time.Sleep(time.Second)
		c := newCluster(t, a, func(o *Options) { o.Config.TableIDs = []string{testTable, "vtb-second"} })
		nodes, want := nodesOf(12)
		c.set(nodes...)
		c.converge(time.Minute)
		c.wantRoutes("vtb-second", want)

		c.unset(nodes[0], nodes[1]) // two nodes go,
		delete(want, cidrOf(0))
		delete(want, cidrOf(1))
		c.set(nodeOf(2, withCIDR(cidrOf(3))), nodeOf(3, withCIDR(cidrOf(2)))) // two swap their CIDRs,
		want[cidrOf(2)], want[cidrOf(3)] = "i-3", "i-2"
		c.set(nodeOf(12), nodeOf(13)) // two come,
		want[cidrOf(12)], want[cidrOf(13)] = "i-12", "i-13"
		c.set(nodeOf(4, withProviderID("cn-hangzhou.i-14"))) // and one is another machine now.
		want[cidrOf(4)] = "i-14"
		c.converge(time.Minute)
		time.Sleep(time.Second) // until the last entries are deleted
		c.wantRoutes("vtb-second", want)
		maps.Copy(want, foreign)
		c.wantRoutes(testTable, want)
		if _, no := c.available(); len(no) != 0 {
			t.Errorf("nodes without network: %v", no)
		}
	})
}

// TestWhileDown changes the cluster while no controller runs.
func TestWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(10)
		a.make("", map[string]string{
			cidrOf(0): "i-0", // made by the official CCM, its node is there
			cidrOf(7): "i-7", // made by the official CCM; node and machine are gone, and no node wants it
			cidrOf(8): "i-8", // of a machine that is no node and is there
		})
		a.ReleaseInstance("i-7")
		c := newCluster(t, a)
		nodes, _ := nodesOf(4)
		c.set(nodes...)
		c.converge(time.Minute)
		want := map[string]string{cidrOf(0): "i-0", cidrOf(1): "i-1", cidrOf(2): "i-2", cidrOf(3): "i-3", cidrOf(7): "i-7", cidrOf(8): "i-8"}
		c.wantRoutes(testTable, want)

		c.restart()
		c.unset(nodes[3])                      // the node went, the machine stays
		c.set(nodeOf(2, withCIDR(cidrOf(20)))) // another pod CIDR
		c.set(nodeOf(4), nodeOf(5), nodeOf(6))
		want[cidrOf(4)], want[cidrOf(5)], want[cidrOf(6)] = "i-4", "i-5", "i-6"
		c.converge(2 * waits.RouteAtStart)
		delete(want, cidrOf(3))
		delete(want, cidrOf(2))
		want[cidrOf(20)] = "i-2"
		c.wantRoutes(testTable, want)

		c.restart()
		c.unset(append(nodes, nodeOf(4), nodeOf(5), nodeOf(6))...) // an API server that lost its data
		c.converge(2 * waits.RouteAtStart)
		c.wantRoutes(testTable, want)
	})
}

// TestConflict: a foreign entry stays, its node has an event and stays without network, the other nodes work.
func TestConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(9)
		a.make("by hand", map[string]string{cidrOf(1): "i-8"})
		c := newCluster(t, a)
		nodes, want := nodesOf(3)
		c.set(nodes...)
		c.converge(time.Minute)
		want[cidrOf(1)] = "i-8"
		c.wantRoutes(testTable, want)
		if _, no := c.available(); !slices.Equal(no, []string{"node-1"}) {
			t.Errorf("nodes without network: %v, want node-1", no)
		}
		if n := c.emitted()[reasonConflict]; n != 1 {
			t.Errorf("%d events about the conflict, want 1", n)
		}
	})
}

// TestDuplicate: an entry that appeared after the table was read is judged by its next hop.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hop string
		no  []string
	}{
		"to our node": {hop: "i-1"}, "to somebody else": {hop: "i-8", no: []string{"node-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(9)
				c := newCluster(t, a)
				nodes, want := nodesOf(3)
				c.set(nodes[0])
				c.converge(time.Minute)
				a.make("by hand", map[string]string{cidrOf(1): test.hop})
				c.set(nodes...)
				c.converge(time.Minute)
				want[cidrOf(1)] = test.hop
				c.wantRoutes(testTable, want)
				if _, no := c.available(); !slices.Equal(no, test.no) {
					t.Errorf("nodes without network: %v, want %v", no, test.no)
				}
			})
		})
	}
}

// TestForeignChanges: what others change in the tables is repaired within the drift period.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, c, _, want := settled(t, 3)
		entries, err := a.Client.DescribeRouteEntries(t.Context(), testTable, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.CIDR == cidrOf(1) {
				if _, err := a.Client.DeleteRouteEntries(t.Context(), entriesOf(e)); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(6 * time.Minute)
		c.converge(time.Minute)
		c.wantRoutes(testTable, want)
	})
}

// TestEventWhileSettling: an event that comes between two reads must not take the network from nodes that have it.
func TestEventWhileSettling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{Settle: 3 * time.Second})
		a.put(5)
		c := newCluster(t, a)
		nodes, _ := nodesOf(5)
		c.set(nodes[:3]...)
		c.converge(time.Minute)
		c.set(nodes...)
		for range 20 {
			c.kickPass()
			if yes, _ := c.available(); len(yes) < 3 {
				t.Fatalf("only %v have a network while two routes settle", yes)
			}
			time.Sleep(50 * time.Millisecond)
		}
		c.converge(time.Minute)
		if _, no := c.available(); len(no) != 0 {
			t.Errorf("nodes without network: %v", no)
		}
	})
}

// TestBatchSize splits the routes of nodes that join together as the user asked, and never over what the API takes.
func TestBatchSize(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{0: 2, 10: 6, 1000: 2} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, emulator.Options{})
			a.put(60)
			c := newCluster(t, a, func(o *Options) { o.BatchSize = size })
			nodes, routes := nodesOf(60)
			c.set(nodes...)
			before := a.Last()
			c.converge(time.Minute)
			if n := a.Count(before, "CreateRouteEntries"); n != want {
				t.Errorf("batch size %d: %d calls for 60 routes, want %d", size, n, want)
			}
			c.wantRoutes(testTable, routes)
		})
	}
}

// TestTwoTables: nodes that join one after the other get their routes in two tables in few passes, though no batch is ever full.
func TestTwoTables(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{Settle: 300 * time.Millisecond})
		a.put(70)
		c := newCluster(t, a, func(o *Options) { o.Config.TableIDs = []string{testTable, "vtb-second"} })
		nodes, want := nodesOf(70)
		for _, joining := range [][]*corev1.Node{nodes[:30], nodes[30:]} {
			c.set(joining...)
			passes := 0
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); passes++ {
				next, err := c.pass(t.Context())
				if err != nil || passes > 30 {
					t.Fatalf("%d passes in five seconds, %v", passes, err)
				}
				time.Sleep(min(time.Until(next), time.Until(end)))
			}
		}
		c.wantRoutes(testTable, want)
		c.wantRoutes("vtb-second", want)
	})
}
