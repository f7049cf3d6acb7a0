package vpcroute

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// withIPv6 is an account whose VPC has IPv6.
func withIPv6() *emulator.Config {
	config := cloud.DefaultConfig()
	config.VPCs[0].IPv6CIDR, config.VSwitches[0].IPv6CIDR = "2408:4005:300:ab00::/56", "2408:4005:300:ab01::/64"
	return config
}

func dualStack(o *Options) {
	o.Config.ClusterCIDRs = append(o.Config.ClusterCIDRs, netip.MustParsePrefix("fd00:10::/48"))
}

func ipv6CIDR(n int) string {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:10:0:%x::/64", n)).String()
}

// dualStackNodes returns nodes with a pod CIDR of each IP version, and their routes.
func dualStackNodes(n int) (nodes []*corev1.Node, routes map[string]string) {
	routes = map[string]string{}
	for i := range n {
		nodes = append(nodes, nodeOf(i, withCIDR(cidrOf(i), ipv6CIDR(i))))
		routes[cidrOf(i)], routes[ipv6CIDR(i)] = fmt.Sprintf("i-%d", i), fmt.Sprintf("i-%d", i)
	}
	return nodes, routes
}

// TestDualStack: both pod CIDRs of a node get a route, follow it, and go with it, whether the cloud's lists show IPv6
// entries by themselves or not.
func TestDualStack(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{"lists show both families": false, "lists show IPv4 unless asked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := withIPv6()
				config.RouteListsIPv4 = hidden
				a := newAccount(t, emulator.Options{Config: config, Settle: 500 * time.Millisecond})
				a.put(40)
				a.make("by hand", map[string]string{ipv6CIDR(2): "i-39"})
				time.Sleep(time.Second)
				c := newCluster(t, a, dualStack)
				nodes, want := dualStackNodes(30)
				want[ipv6CIDR(2)] = "i-39"
				want["::/0"] = "ipv6gw-" + testVPC // the cloud's own, which stays
				c.set(nodes...)
				c.converge(time.Minute)
				c.wantRoutes(testTable, want)
				if _, no := c.available(); !slices.Equal(no, []string{"node-2"}) {
					t.Errorf("nodes without network: %v, want the one whose IPv6 range leads elsewhere", no)
				}
				if events := c.emitted(); events[reasonConflict] != 1 || events[reasonIPv6] != 0 {
					t.Errorf("events = %v, want one %s", events, reasonConflict)
				}

				c.restart()
				c.unset(nodes[0])
				delete(want, cidrOf(0))
				delete(want, ipv6CIDR(0))
				c.set(nodeOf(1, withCIDR(cidrOf(1), ipv6CIDR(50))))
				delete(want, ipv6CIDR(1))
				want[ipv6CIDR(50)] = "i-1"
				c.converge(2 * waits.RouteAtStart)
				time.Sleep(time.Second) // for the deletions to settle
				c.wantRoutes(testTable, want)
			})
		})
	}
}

// TestDualStackCondition: one route of two is not enough.
func TestDualStackCondition(t *testing.T) {
	t.Parallel()
	v4, v6 := netip.MustParsePrefix(cidrOf(0)), netip.MustParsePrefix(ipv6CIDR(0))
	node := nodeOf(0, withCIDR(v4.String(), v6.String()))
	for name, test := range map[string]struct {
		states map[netip.Prefix]state
		want   bool
	}{
		"none":      {states: map[netip.Prefix]state{v4: stateMissing, v6: stateMissing}},
		"IPv4 only": {states: map[netip.Prefix]state{v4: stateAvailable, v6: statePending}},
		"IPv6 only": {states: map[netip.Prefix]state{v4: stateConflict, v6: stateAvailable}},
		"both":      {states: map[netip.Prefix]state{v4: stateAvailable, v6: stateAvailable}, want: true},
	} {
		d := &desired{routes: map[netip.Prefix]desiredRoute{v4: {node: node}, v6: {node: node}}}
		plans := []*plan{{table: &table{}, states: test.states}}
		tableOf, check := func(*corev1.Node) string { return "" }, func(string) availability { return up }
		if got := wantedConditions(d, plans, tableOf, check)[node] == conditionCreated; got != test.want {
			t.Errorf("%s: available = %t, want %t", name, got, test.want)
		}
	}
}

// TestVPCWithoutIPv6: the IPv4 routes work, one event for the cluster reports the others, and nothing is asked for that
// the cloud would refuse. A node with nothing but IPv6 has no network.
func TestVPCWithoutIPv6(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){"wanted by --cluster-cidr": dualStack, "not in --cluster-cidr": func(*Options) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(4)
				c := newCluster(t, a, change)
				nodes, _ := dualStackNodes(3)
				c.set(append(nodes, nodeOf(3, withCIDR(ipv6CIDR(3))))...)
				c.converge(time.Minute)
				c.wantRoutes(testTable, map[string]string{cidrOf(0): "i-0", cidrOf(1): "i-1", cidrOf(2): "i-2"})
				if _, no := c.available(); !slices.Equal(no, []string{"node-3"}) {
					t.Errorf("nodes without network: %v, want node-3", no)
				}
				if events := c.emitted(); events[reasonIPv6] != 1 {
					t.Errorf("events = %v, want one %s", events, reasonIPv6)
				}
				for _, call := range a.Calls(0) {
					if call.Code != "" {
						t.Errorf("%s was refused with %s", call.Action, call.Code)
					}
				}
			})
		})
	}
}

// TestIPv6AdapterRoute: the stock route controller makes a route per pod CIDR of a node, too.
func TestIPv6AdapterRoute(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config *emulator.Config
		fails  bool
	}{"VPC with IPv6": {config: withIPv6()}, "VPC without IPv6": {fails: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{Config: test.config})
				a.put(1)
				c := newCluster(t, a, dualStack)
				node := nodeOf(0, withCIDR(cidrOf(0), ipv6CIDR(0)))
				c.set(node)
				routes := NewRoutes(c.writer)
				route := routeTo(node)
				cidr := netip.MustParsePrefix(ipv6CIDR(0)) // in a spelling that the cloud does not use
				route.DestinationCIDR = fmt.Sprintf("%s/%d", cidr.Addr().StringExpanded(), cidr.Bits())
				if err := routes.CreateRoute(t.Context(), "", "", route); (err != nil) != test.fails {
					t.Fatalf("create the route: %v", err)
				}
				if test.fails {
					return
				}
				listed, err := routes.ListRoutes(t.Context(), "")
				if err != nil || len(listed) != 2 {
					t.Fatalf("listed: %v, %v, want the routes of both pod CIDRs", listed, err)
				}
				c.set(nodeOf(0, withCIDR(cidrOf(0))))
				for range 2 {
					if listed, err = routes.ListRoutes(t.Context(), ""); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * waits.RouteWithoutNode)
				}
				for _, route := range listed {
					if err := routes.DeleteRoute(t.Context(), "", route); err != nil {
						t.Fatal(err)
					}
				}
				if left := a.Routes(testTable); len(left) != 2 || left["::/0"] == "" || left[cidrOf(0)] == "" {
					t.Errorf("routes left: %v, want the cloud's own and that of the pod CIDR that is left", left)
				}
			})
		})
	}
}

// TestUnknownVSwitches: a key that may not list vSwitches cannot tell whether the VPC has IPv6, so the cloud is asked.
func TestUnknownVSwitches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := withIPv6()
		config.AccessKeys = append(config.AccessKeys, cloud.AccessKeyConfig{ID: "routes", Secret: "secret", Permissions: []string{
			"vpc:*Route*",
		}})
		a := newAccount(t, emulator.Options{Config: config})
		a.put(1)
		client := a.ClientOf("routes", "secret")
		c := newCluster(t, a, dualStack, func(o *Options) { o.API = client })
		nodes, want := dualStackNodes(1)
		want["::/0"] = "ipv6gw-" + testVPC
		c.set(nodes...)
		c.converge(time.Minute)
		c.wantRoutes(testTable, want)
	})
}
