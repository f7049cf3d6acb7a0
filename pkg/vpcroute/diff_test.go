package vpcroute

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func entryTo(cidr, hop string, change ...func(*alicloud.RouteEntry)) alicloud.RouteEntry {
	e := alicloud.RouteEntry{
		ID: "rte-" + cidr, TableID: testTable, CIDR: cidr, Type: alicloud.RouteTypeCustom, Status: alicloud.RouteAvailable,
		NextHops: []alicloud.NextHop{{ID: hop, Type: alicloud.NextHopInstance}},
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func status(s string) func(*alicloud.RouteEntry) {
	return func(e *alicloud.RouteEntry) { e.Status = s }
}

func marked(e *alicloud.RouteEntry) { e.Description = "k8s/pod-cidr/test" }

func described(text string) func(*alicloud.RouteEntry) {
	return func(e *alicloud.RouteEntry) { e.Description = text }
}

func routeOf(cidr, instance string) route {
	return route{cidr: netip.MustParsePrefix(cidr), instance: instance}
}

func hops(all ...alicloud.NextHop) func(*alicloud.RouteEntry) {
	return func(e *alicloud.RouteEntry) { e.NextHops = all }
}

func TestDiff(t *testing.T) {
	t.Parallel()
	const cidr0, cidr1, cidr9 = "10.244.0.0/28", "10.244.1.0/28", "10.244.9.0/28"
	two := []*corev1.Node{nodeOf(0), nodeOf(1)}
	excluded := nodeOf(1, func(node *corev1.Node) { node.Labels["service.alibabacloud.com/exclude-node"] = "" })
	for name, test := range map[string]struct {
		nodes   []*corev1.Node
		former  []route
		gone    string
		entries []alicloud.RouteEntry
		create  []string // CIDRs
		remove  []string
		states  map[string]state
		unowned []string
	}{
		"empty table": {
			nodes: two, create: []string{cidr0, cidr1}, states: map[string]state{cidr0: stateMissing, cidr1: stateMissing},
		},
		"all there": {
			nodes: two, entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr1, "i-1", marked)},
			states: map[string]state{cidr0: stateAvailable, cidr1: stateAvailable},
		},
		"prefixed provider ID": {
			nodes:   []*corev1.Node{nodeOf(0, withProviderID("alicloud://cn-hangzhou.i-0"))},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0")}, states: map[string]state{cidr0: stateAvailable},
		},
		"the cloud is at work": {
			nodes: two, entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0", status(alicloud.RoutePending)),
				entryTo(cidr1, "i-1", status("Modifying"))},
			states: map[string]state{cidr0: statePending, cidr1: statePending},
		},
		"CIDR moves to another node": {
			nodes:   []*corev1.Node{nodeOf(0), nodeOf(1, withCIDR(cidr9))},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr9, "i-0", marked)},
			remove:  []string{cidr9}, states: map[string]state{cidr0: stateAvailable, cidr9: statePending},
		},
		"CIDR of a node that went away": {
			nodes: two, former: []route{routeOf(cidr0, "i-7"), routeOf(cidr9, "i-7")},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-7"), entryTo(cidr1, "i-1"), entryTo(cidr9, "i-7")},
			remove:  []string{cidr0, cidr9}, states: map[string]state{cidr0: statePending, cidr1: stateAvailable},
		},
		"entry is being deleted": {
			nodes: two[:1],
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-7", status(alicloud.RouteDeleting)),
				entryTo(cidr9, "i-7", status(alicloud.RouteDeleting))},
			states: map[string]state{cidr0: statePending},
		},
		"marked entry of a node that went away while nobody looked": {
			nodes: two[:1], entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr9, "i-7", marked)},
			remove: []string{cidr9}, states: map[string]state{cidr0: stateAvailable},
		},
		"no node at all: the entries are without a node, and whether they go is decided elsewhere": {
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0", marked), entryTo(cidr1, "i-1")}, remove: []string{cidr0},
		},
		"no node is left, or the API server has lost them all": {
			former:  []route{routeOf(cidr0, "i-0"), routeOf(cidr1, "i-1")},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0", marked), entryTo(cidr1, "i-1", marked)},
			remove:  []string{cidr0, cidr1},
		},
		"foreign entry in the way": {
			nodes: two[:1], entries: []alicloud.RouteEntry{entryTo(cidr0, "i-other", described("by hand"))},
			states: map[string]state{cidr0: stateConflict},
		},
		"unmarked entry in the way": {
			nodes: two[:1], entries: []alicloud.RouteEntry{entryTo(cidr0, "i-other")}, states: map[string]state{cidr0: stateConflict},
			unowned: []string{cidr0},
		},
		"unmarked entry in the way, to another node": {
			nodes: two, entries: []alicloud.RouteEntry{entryTo(cidr0, "i-1"), entryTo(cidr1, "i-1")},
			states: map[string]state{cidr0: statePending, cidr1: stateAvailable}, remove: []string{cidr0},
		},
		"entry of somebody else in the way, to another node": {
			nodes: two, entries: []alicloud.RouteEntry{entryTo(cidr0, "i-1", described("by hand")), entryTo(cidr1, "i-1")},
			states: map[string]state{cidr0: statePending, cidr1: stateAvailable}, remove: []string{cidr0},
		},
		"unmarked entry in the way, its instance is gone": {
			nodes: two[:1], gone: "i-7", entries: []alicloud.RouteEntry{entryTo(cidr0, "i-7")}, remove: []string{cidr0},
			states: map[string]state{cidr0: statePending},
		},
		"entry with the literal cluster id in the way, its instance is gone": {
			nodes: two[:1], gone: "i-7", entries: []alicloud.RouteEntry{entryTo(cidr0, "i-7", described("k8s/pod-cidr/clusterid"))},
			remove: []string{cidr0}, states: map[string]state{cidr0: statePending},
		},
		"another's entry in the way, its instance is gone": {
			nodes: two[:1], gone: "i-7", entries: []alicloud.RouteEntry{entryTo(cidr0, "i-7", described("by hand"))},
			states: map[string]state{cidr0: stateConflict},
		},
		"unmarked entry inside a pod CIDR": {
			nodes: []*corev1.Node{nodeOf(0, withCIDR("10.244.0.0/24"))}, create: []string{"10.244.0.0/24"},
			entries: []alicloud.RouteEntry{entryTo("10.244.0.128/25", "i-7")}, states: map[string]state{"10.244.0.0/24": stateMissing},
			unowned: []string{"10.244.0.128/25"},
		},
		"unmarked entry of nobody's CIDR, its instance is gone": {
			nodes: two[:1], gone: "i-7", entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr9, "i-7")},
			states: map[string]state{cidr0: stateAvailable},
		},
		"the Node of a marked entry has no pod CIDR yet": {
			nodes:   []*corev1.Node{nodeOf(0), nodeOf(1, withCIDR())},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr1, "i-1", marked)},
			states:  map[string]state{cidr0: stateAvailable},
		},
		"other kind of next hop in the way": {
			nodes:   two[:1],
			entries: []alicloud.RouteEntry{entryTo(cidr0, "", hops(alicloud.NextHop{ID: "vpn-1", Type: "VpnGateway"}))},
			states:  map[string]state{cidr0: stateConflict},
		},
		"foreign entries": {
			nodes: two[:1],
			entries: []alicloud.RouteEntry{
				entryTo(cidr0, "i-0"),
				entryTo("0.0.0.0/0", "i-0"), entryTo("192.168.0.0/24", "i-0"), entryTo("10.244.0.0/16", "i-0"), entryTo("10.0.0.0/8", "i-0"),
				entryTo("10.244.5.0/28", "i-other"), entryTo("10.244.6.0/28", "i-other", described("by hand")),
				entryTo("10.244.7.0/28", "",
					hops(alicloud.NextHop{ID: "i-0", Type: alicloud.NextHopInstance}, alicloud.NextHop{ID: "i-1", Type: alicloud.NextHopInstance})),
				entryTo("10.244.8.0/28", "", hops(alicloud.NextHop{ID: "eni-1", Type: "NetworkInterface"})),
				entryTo("10.244.9.0/28", "i-0", func(e *alicloud.RouteEntry) { e.Type = "System" }),
				entryTo("10.244.10.0/28", "i-7", described("k8s/pod-cidr/other-cluster")),
			},
			states: map[string]state{cidr0: stateAvailable},
		},
		"node without provider ID keeps its entry": {
			nodes: []*corev1.Node{nodeOf(0), nodeOf(1, withProviderID(""))}, former: []route{routeOf(cidr1, "i-1")},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr1, "i-1", marked)}, states: map[string]state{cidr0: stateAvailable},
		},
		"excluded node: its entry stays": {
			nodes: []*corev1.Node{nodeOf(0), excluded}, former: []route{routeOf(cidr1, "i-1")},
			entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0"), entryTo(cidr1, "i-1")}, states: map[string]state{cidr0: stateAvailable},
		},
		"excluded node: none is made": {nodes: []*corev1.Node{nodeOf(0), excluded}, create: []string{cidr0},
			states: map[string]state{cidr0: stateMissing}},
		"two nodes with one CIDR": {
			nodes: []*corev1.Node{nodeOf(0), nodeOf(1, withCIDR(cidr0))}, entries: []alicloud.RouteEntry{entryTo(cidr0, "i-0")},
			states: map[string]state{cidr0: stateAvailable},
		},
		"pod CIDR outside the cluster CIDR": {nodes: []*corev1.Node{nodeOf(0, withCIDR("10.99.0.0/24"))}},
		"dual stack": {nodes: []*corev1.Node{nodeOf(0, withCIDR(cidr0, "fd00::/64"))}, create: []string{cidr0},
			states: map[string]state{cidr0: stateMissing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := desiredOf(test.nodes, testConfig(), instanceOf, time.Now())
			known := evidence{
				former: func(r route) bool { return slices.Contains(test.former, r) },
				gone:   func(instance string) bool { return instance == test.gone },
			}
			p := diff(d, newTable(testTable, test.entries, testConfig(), time.Now()), testConfig(), known)
			var create, remove, unowned []string
			for _, route := range p.create {
				create = append(create, route.cidr.String())
			}
			for _, e := range p.replace {
				remove = append(remove, e.CIDR)
			}
			for _, e := range p.surplus {
				remove = append(remove, e.CIDR)
			}
			for _, e := range p.unowned {
				unowned = append(unowned, e.CIDR)
			}
			states := map[string]state{}
			for cidr, s := range p.states {
				states[cidr.String()] = s
			}
			if test.states == nil {
				test.states = map[string]state{}
			}
			for what, pair := range map[string][2]any{
				"create": {test.create, create}, "remove": {test.remove, remove}, "unowned": {test.unowned, unowned}, "states": {test.states, states},
			} {
				if d := cmp.Diff(pair[0], pair[1]); d != "" {
					t.Errorf("%s (-want +got):\n%s", what, d)
				}
			}
		})
	}
}

// TestDiffConverges: whatever is in the table, carrying out differences ends in the wanted routes and then in no
// difference, and never touches a foreign entry.
func TestDiffConverges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var nodes []*corev1.Node
		for i := range random.IntN(8) {
			nodes = append(nodes, nodeOf(i, withCIDR(cidrOf(random.IntN(12)))))
		}
		var entries []alicloud.RouteEntry
		foreign := map[string]string{}
		for i := range 12 {
			switch hop := fmt.Sprintf("i-%d", random.IntN(8)); random.IntN(4) {
			case 0:
				entries = append(entries, entryTo(cidrOf(i), hop, marked))
			case 1:
				foreign[cidrOf(i)] = "i-foreign"
				entries = append(entries, entryTo(cidrOf(i), "i-foreign"))
			}
		}
		d := desiredOf(nodes, testConfig(), instanceOf, time.Now())
		known := evidence{former: func(route) bool { return false }, gone: func(string) bool { return false }}
		table := newTable(testTable, entries, testConfig(), time.Now())
		for range 3 {
			p := diff(d, table, testConfig(), known)
			for _, e := range p.surplus {
				p.replace = append(p.replace, e)
			}
			for _, e := range p.replace {
				table.removed(e.cidr, time.Now())
			}
			for _, route := range p.create {
				table.created(route, testConfig().mark(), time.Now())
			}
			for cidr, e := range table.entries {
				e.Status = alicloud.RouteAvailable
				table.entries[cidr] = e
			}
		}
		p := diff(d, table, testConfig(), known)
		if len(p.create)+len(p.replace)+len(p.surplus) != 0 {
			t.Fatalf("seed %d: still %d to create and %d to remove", seed, len(p.create), len(p.replace)+len(p.surplus))
		}
		for cidr, w := range d.routes {
			if got := table.entries[cidr].instance; got != w.instance && foreign[cidr.String()] == "" {
				t.Errorf("seed %d: %s leads to %q, want %s", seed, cidr, got, w.instance)
			}
		}
		for cidr, hop := range foreign {
			if got := table.entries[netip.MustParsePrefix(cidr)].instance; got != hop {
				t.Errorf("seed %d: the foreign entry %s leads to %q now", seed, cidr, got)
			}
		}
	}
}

func TestParseClusterCIDRs(t *testing.T) {
	t.Parallel()
	got, err := ParseClusterCIDRs("10.244.0.0/16, fd00::/48")
	want := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00::/48")}
	if err != nil || !cmp.Equal(got, want, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })) {
		t.Errorf("ParseClusterCIDRs = %v, %v, want %v", got, err, want)
	}
	for _, value := range []string{"", "10.244.0.0", "10.244.0.1/16", "0.0.0.0/0", "10.244.0.0/16,", "pods"} {
		if _, err := ParseClusterCIDRs(value); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", value)) {
			t.Errorf("ParseClusterCIDRs(%q): error %v, want one that names the value", value, err)
		}
	}
}
