package vpcroute

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestStaleOfficialEntryBlocksNewNode: an entry that the official CCM left behind is removed within a period, once the cloud has
// shown for a minute that its instance is gone.
func TestStaleOfficialEntryBlocksNewNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(3)
		a.make("", map[string]string{cidrOf(0): "i-2"})
		a.ReleaseInstance("i-2")
		c := newCluster(t, a)
		nodes, want := nodesOf(2)
		c.set(nodes...)
		c.passFor(30 * time.Second)
		if hop := a.Routes(testTable)[cidrOf(0)]; hop != "i-2" {
			t.Errorf("the entry leads to %q before anything is proven", hop)
		}
		c.passFor(defaultPeriod - 30*time.Second)
		c.wantRoutes(testTable, want)
		if _, no := c.available(); len(no) > 0 {
			t.Errorf("nodes without network: %v", no)
		}
	})
}

// TestOnePartialAnswerDeletesNoForeignRoute: an instance that the list of instances lacks for a while is not gone.
func TestOnePartialAnswerDeletesNoForeignRoute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(3)
		foreign := map[string]string{cidrOf(0): "i-2"}
		a.make("", foreign)
		c := newCluster(t, a)
		nodes, want := nodesOf(2)
		maps.Copy(want, foreign)
		c.set(nodes...)
		for range 5 {
			a.ReleaseInstance("i-2")
			c.passFor(lookupInterval + time.Second)
			if _, err := a.PutInstance("i-2", emulator.InstanceSpec{PrivateIP: addressOfNode(2)}); err != nil {
				t.Fatal(err)
			}
			c.passFor(defaultPeriod)
		}
		c.wantRoutes(testTable, want)
		if n := a.Count(0, "DescribeInstances"); n > 30 {
			t.Errorf("%d look-ups in half an hour", n)
		}

		// An answer that lacks an instance of a node proves nothing either.
		a.ReleaseInstance("i-2")
		a.ReleaseInstance("i-1")
		c.passFor(time.Hour)
		if hop := a.Routes(testTable)[cidrOf(0)]; hop != "i-2" {
			t.Errorf("the entry leads to %q although the answers proved nothing", hop)
		}
	})
}

// TestMassRouteDeletion: an API server that lost its data and is filled node by node again costs no working route; routes whose
// instances are gone go all the same.
func TestMassRouteDeletion(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"the controller runs on": false, "the controller restarts": true} {
		for _, n := range []int{3, 100} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { playMassDeletion(t, n, restart) })
			})
		}
	}
}

func playMassDeletion(t *testing.T, n int, restart bool) {
	t.Helper()
	a, c, nodes, want := settled(t, n)
	c.unset(nodes...)
	c.passFor(time.Minute)
	if restart {
		c.restart()
	}
	for _, node := range nodes[:n/2] {
		c.set(node)
		c.passFor(3 * time.Minute)
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Fatalf("routes (-want +got):\n%s", diff)
		}
	}
	if emitted := c.emitted(); emitted[reasonWithheld] == 0 {
		t.Errorf("events %v, want one about routes that stay", emitted)
	}
	for i := n / 2; i < n; i++ {
		a.ReleaseInstance(fmt.Sprintf("i-%d", i))
		delete(want, cidrOf(i))
	}
	c.passFor(2 * defaultPeriod)
	c.wantRoutes(testTable, want)
}

// TestNodesWithoutCIDRLoseNoForeignRoutes: entries that lead to nodes are others' unless a node had them.
func TestNodesWithoutCIDRLoseNoForeignRoutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(10)
		want := map[string]string{}
		for i := range 5 {
			want[cidrOf(i)] = fmt.Sprintf("i-%d", i)
		}
		a.make("", want)
		other := map[string]string{}
		for i := 5; i < 10; i++ {
			other[cidrOf(i)] = fmt.Sprintf("i-%d", i)
		}
		a.make("flannel", other)
		maps.Copy(want, other)
		c := newCluster(t, a)
		for i := range 10 {
			c.set(nodeOf(i, withCIDR()))
		}
		c.passFor(time.Hour)
		c.wantRoutes(testTable, want)
		for i := range 10 {
			c.set(nodeOf(i, withCIDR(cidrOf(i+100))))
			want[cidrOf(i+100)] = fmt.Sprintf("i-%d", i)
		}
		c.passFor(time.Hour)
		c.wantRoutes(testTable, want)
	})
}

// TestLiteralClusterID: two clusters with the literal cluster id and overlapping cluster CIDRs leave each other's routes alone.
func TestLiteralClusterID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", sharedClusterID} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(11)
				literal := func(o *Options) { o.Config.ClusterID = id }
				first, second := newCluster(t, a, literal), newCluster(t, a, literal)
				nodes, want := nodesOf(10)
				first.set(nodes[:5]...)
				second.set(nodes[5:]...)
				for range 3 {
					first.passFor(10 * time.Minute)
					second.passFor(10 * time.Minute)
					first.restart()
					second.restart()
				}
				first.wantRoutes(testTable, want)

				// What this process has seen is proof enough for its own.
				first.unset(nodes[0])
				first.passFor(time.Minute)
				delete(want, cidrOf(0))
				first.wantRoutes(testTable, want)
			})
		})
	}
}

// TestMarkOfEarlierClusterID: entries with the literal id are healed like unmarked ones after the cluster got an id of its own.
func TestMarkOfEarlierClusterID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(5)
		c := newCluster(t, a, func(o *Options) { o.Config.ClusterID = sharedClusterID })
		nodes, want := nodesOf(3)
		c.set(nodes...)
		c.converge(time.Minute)
		before := a.Last()
		c.opts.Config.ClusterID = "c-1"
		c.restart()
		a.ReleaseInstance("i-0")
		c.unset(nodes[0])
		c.set(nodeOf(4, withCIDR(cidrOf(0)))) // a new node gets the CIDR of one that is gone
		want[cidrOf(0)] = "i-4"
		c.passFor(defaultPeriod)
		c.wantRoutes(testTable, want)
		if n := a.Count(before, writes...); n != 2 {
			t.Errorf("%d writes, want a deletion and a creation", n)
		}
	})
}

// TestSharedMarksOfGoneInstances: entries with the literal id do not use up the quota for ever: those whose instances are proven gone
// go, those of instances that run, of whichever cluster, stay, and so do entries without a mark.
func TestSharedMarksOfGoneInstances(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"c-1", sharedClusterID} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(6)
				a.make(sharedMark, map[string]string{cidrOf(2): "i-2", cidrOf(3): "i-3"})
				a.make("", map[string]string{cidrOf(4): "i-4", cidrOf(5): "i-5"})
				a.ReleaseInstance("i-2")
				a.ReleaseInstance("i-4")
				c := newCluster(t, a, func(o *Options) { o.Config.ClusterID = id })
				nodes, want := nodesOf(2)
				maps.Copy(want, map[string]string{cidrOf(3): "i-3", cidrOf(4): "i-4", cidrOf(5): "i-5"})
				c.set(nodes...)
				c.passFor(defaultPeriod)
				c.wantRoutes(testTable, want)
				before := a.Last()
				c.passFor(time.Hour)
				if n := a.Count(before, "DescribeInstances"); n > 15 {
					t.Errorf("%d look-ups in an hour for an instance that runs, want about one in five minutes", n)
				}
			})
		})
	}
}

// TestFormerRoutesAreForgotten: what was remembered of routes goes with their entries.
func TestFormerRoutesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(31)
		c := newCluster(t, a)
		c.set(nodeOf(30))
		for i := range 30 {
			c.set(nodeOf(i))
			c.converge(time.Minute)
			c.unset(nodeOf(i))
			c.passFor(waits.RoutesInTurn + waits.RouteWithoutNode)
		}
		if n := len(c.writer.former); n > 2 {
			t.Errorf("%d routes are remembered, want those of the one node that is there", n)
		}
	})
}

// TestPreviewIsWhatHappens compares the plan with what the controller writes in the half hour after, for everything that the
// other tests of this package set up (the findings PreviewHidesDeletions and PreviewShowsImpossible).
func TestPreviewIsWhatHappens(t *testing.T) {
	t.Parallel()
	marked, hand := "k8s/pod-cidr/test", "by hand"
	for name, test := range map[string]struct {
		entries  map[string]map[string]string // by description
		released []string
		nodes    []*corev1.Node
		problems int
		refused  string // a CIDR whose route the cloud does not accept
		change   func(*Options)
	}{
		"nothing there": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)}},
		"no node":       {entries: map[string]map[string]string{marked: {cidrOf(0): "i-0"}}, problems: 1},
		"all there":     {nodes: []*corev1.Node{nodeOf(0)}, entries: map[string]map[string]string{"": {cidrOf(0): "i-0"}}},
		"node went": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)},
			entries: map[string]map[string]string{marked: {cidrOf(2): "i-2"}}},
		"nodes swapped": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)},
			entries: map[string]map[string]string{marked: {cidrOf(0): "i-1", cidrOf(1): "i-0"}}},
		"conflict": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)},
			entries: map[string]map[string]string{hand: {cidrOf(0): "i-5"}}, problems: 1},
		"unmarked conflict": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)},
			entries: map[string]map[string]string{"": {cidrOf(0): "i-5"}}, problems: 1},
		"stale official entry": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)},
			entries: map[string]map[string]string{"": {cidrOf(0): "i-5"}}, released: []string{"i-5"}},
		"stale, and foreign": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1)},
			entries: map[string]map[string]string{hand: {cidrOf(0): "i-5"}}, released: []string{"i-5"}, problems: 1},
		"foreign routes": {nodes: []*corev1.Node{nodeOf(0, withCIDR())}, problems: 1,
			entries: map[string]map[string]string{"": {cidrOf(7): "i-0"}, hand: {cidrOf(8): "i-0"}}},
		"mass deletion": {nodes: []*corev1.Node{nodeOf(0)},
			entries: map[string]map[string]string{marked: {cidrOf(1): "i-1", cidrOf(2): "i-2", cidrOf(3): "i-3"}}, problems: 1},
		"mass deletion, all gone": {nodes: []*corev1.Node{nodeOf(0)},
			entries:  map[string]map[string]string{marked: {cidrOf(1): "i-1", cidrOf(2): "i-2", cidrOf(3): "i-3"}},
			released: []string{"i-1", "i-2", "i-3"}},
		"overlap": {nodes: []*corev1.Node{nodeOf(0, withCIDR("10.244.0.0/24")), nodeOf(1, withCIDR("10.244.0.128/25"))},
			problems: 1},
		"outside the cluster CIDR": {nodes: []*corev1.Node{nodeOf(0, networked, withCIDR("10.99.0.0/24"))}, problems: 1},
		"an entry of somebody else": {nodes: []*corev1.Node{nodeOf(0, networked), nodeOf(1)},
			entries: map[string]map[string]string{hand: {cidrOf(0): "i-5"}}, problems: 1},
		"overlaps with a vSwitch":     {nodes: []*corev1.Node{nodeOf(0, withCIDR("10.1.3.0/24"))}, problems: 1, change: wide},
		"IPv6 without any in the VPC": {nodes: []*corev1.Node{nodeOf(0, withCIDR(cidrOf(0), ipv6CIDR(0)))}, problems: 1, change: dualStack},
		"excluded": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1, func(n *corev1.Node) {
			n.Labels["service.alibabacloud.com/exclude-node"] = ""
		})}, entries: map[string]map[string]string{marked: {cidrOf(1): "i-1"}}},
		"two tables, one unreadable": {nodes: []*corev1.Node{nodeOf(0)}, change: func(o *Options) {
			o.Config.TableIDs = []string{testTable, "vtb-none"}
		}, problems: 1},
		"entry of a CEN": {nodes: []*corev1.Node{nodeOf(cenNode, withProviderID("cn-hangzhou.i-0")), nodeOf(1)}, refused: cidrOf(cenNode)},
		"literal mark, gone": {nodes: []*corev1.Node{nodeOf(0)},
			entries: map[string]map[string]string{"k8s/pod-cidr/clusterid": {cidrOf(5): "i-5", cidrOf(6): "i-6"}}, released: []string{"i-5"}},
		"literal id of this cluster": {nodes: []*corev1.Node{nodeOf(0)},
			entries: map[string]map[string]string{"k8s/pod-cidr/clusterid": {cidrOf(5): "i-5", cidrOf(0): "i-0"}}, change: func(o *Options) {
				o.Config.ClusterID = sharedClusterID
			}},
		"two Nodes of one instance": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1, withProviderID("cn-hangzhou.i-0"))}},
		"without the cluster CIDR": {nodes: []*corev1.Node{nodeOf(0, withCIDR("10.99.0.0/24"))}, change: func(o *Options) {
			o.Config.ClusterCIDRs = nil
		}},
		"not in the VPC": {nodes: []*corev1.Node{nodeOf(0), nodeOf(8)}, released: []string{"i-8"}, refused: cidrOf(8)},
		"more than the table takes": {nodes: []*corev1.Node{nodeOf(0), nodeOf(1), nodeOf(2)}, change: func(o *Options) {
			o.Quota = func() Quota { return Quota{Value: 3, Origin: "configured"} }
		}, problems: 1},
		"source/destination check on": {nodes: []*corev1.Node{nodeOf(0)}, change: func(o *Options) { o.SkipSourceDestCheck = false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(9)
				for _, description := range slices.Sorted(maps.Keys(test.entries)) {
					a.make(description, test.entries[description])
				}
				for _, id := range test.released {
					a.ReleaseInstance(id)
				}
				changes := []func(*Options){}
				if test.change != nil {
					changes = append(changes, test.change)
				}
				c := newCluster(t, a, changes...)
				c.set(test.nodes...)
				before := a.Last()
				preview, err := NewWriter(c.opts).Preview(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n := a.Count(before, writes...); n != 0 {
					t.Errorf("the preview made %d writes", n)
				}
				if len(preview.Problems) != test.problems {
					t.Errorf("problems %q, want %d", preview.Problems, test.problems)
				}
				if test.refused != "" {
					preview.Writes = slices.DeleteFunc(preview.Writes, func(line string) bool { return strings.Contains(line, test.refused) })
				}
				happened := routesBefore(a)
				c.passFor(30 * time.Minute)
				if diff := cmp.Diff(happened.changes(a), slices.Sorted(slices.Values(preview.Writes))); diff != "" {
					t.Errorf("writes (-happened +previewed):\n%s", diff)
				}
			})
		})
	}
}

func wide(o *Options) { o.Config.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")} }

// routesOf is what a table held.
type routesOf struct{ before map[string]string }

func routesBefore(a *account) routesOf { return routesOf{a.Routes(testTable)} }

// changes lists what has changed in the table since, as a preview does.
func (r routesOf) changes(a *account) []string {
	var lines []string
	after := a.Routes(testTable)
	for cidr, hop := range r.before {
		if after[cidr] != hop {
			lines = append(lines, strings.Join([]string{"delete route", cidr, "to", hop, "in", testTable}, " "))
		}
	}
	for cidr, hop := range after {
		if r.before[cidr] != hop {
			lines = append(lines, strings.Join([]string{"create route", cidr, "to", hop, "in", testTable}, " "))
		}
	}
	return slices.Sorted(slices.Values(lines))
}
