//go:build linux

package vpcnet

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
)

var (
	address = netip.MustParseAddr
	prefix  = netip.MustParsePrefix
)

func instancePort(name, ip, link string) *port {
	return &port{Endpoint: Endpoint{Name: name, Address: address(ip), Place: Instance}, link: link, table: 1}
}

func networkInterface(instance string, running bool, ips ...string) emulator.NetworkInterface {
	eni := emulator.NetworkInterface{InstanceID: instance, Running: running}
	for _, ip := range ips {
		eni.Addresses = append(eni.Addresses, address(ip))
	}
	return eni
}

// TestRoutesOfAPlan asks where packets for a destination in a kernel table go. hop{} means nowhere, absent that the next table is asked.
func TestRoutesOfAPlan(t *testing.T) {
	t.Parallel()
	topology := func(eni emulator.NetworkInterface, routes ...emulator.Route) emulator.Topology {
		return emulator.Topology{Interfaces: []emulator.NetworkInterface{eni}, Tables: []emulator.RouteTable{{ID: "vtb", Routes: routes}}}
	}
	route := func(cidr, instance string) emulator.Route {
		return emulator.Route{CIDR: prefix(cidr), InstanceID: instance}
	}
	one := []*port{instancePort("i-1", "10.1.0.1", "m1")}
	running, stopped := networkInterface("i-1", true, "10.1.0.1", "10.1.0.9"), networkInterface("i-1", false, "10.1.0.1")
	through := hop{link: "m1", via: address("10.1.0.1")}
	tests := []struct {
		name  string
		in    input
		table int
		to    string
		want  hop
		none  bool
	}{
		{name: "a machine's own address", in: input{topology: topology(running), ports: one}, table: vpcTable, to: "10.1.0.1/32",
			want: hop{link: "m1"}},
		{name: "a second address", in: input{topology: topology(running), ports: one}, table: vpcTable, to: "10.1.0.9/32", want: through},
		{name: "not in the internet", in: input{topology: topology(running), ports: one}, table: outsideTable, to: "10.1.0.1/32", none: true},
		{name: "a stopped machine", in: input{topology: topology(stopped), ports: one}, table: vpcTable, to: "10.1.0.1/32"},
		{name: "an instance without machine", in: input{topology: topology(running)}, table: vpcTable, to: "10.1.0.1/32", none: true},
		{name: "an entry", in: input{topology: topology(running, route("10.244.1.0/24", "i-1")), ports: one}, table: firstRouteTable,
			to: "10.244.1.0/24", want: through},
		{name: "an entry with bits behind its mask", in: input{topology: topology(running, route("10.244.1.7/24", "i-1")), ports: one},
			table: firstRouteTable, to: "10.244.1.0/24", want: through},
		{name: "an entry to a stopped machine", in: input{topology: topology(stopped, route("10.244.1.0/24", "i-1")), ports: one},
			table: firstRouteTable, to: "10.244.1.0/24"},
		{name: "an entry to a released machine", in: input{topology: topology(running, route("10.244.1.0/24", "i-9")), ports: one},
			table: firstRouteTable, to: "10.244.1.0/24"},
		{name: "an entry to a gateway", in: input{topology: topology(running, route("10.244.1.0/24", "")), ports: one}, table: firstRouteTable,
			to: "10.244.1.0/24"},
		{name: "an entry of IPv6", in: input{topology: topology(running, route("fd00::/64", "i-1")), ports: one}, table: firstRouteTable,
			to: "fd00::/64", none: true},
		{name: "an intranet VIP in the VPC", in: input{vips: []fabric.VIP{{Address: "10.1.0.5"}}}, table: vpcTable, to: "10.1.0.5/32",
			want: hop{link: loopback}},
		{name: "an intranet VIP in the internet", in: input{vips: []fabric.VIP{{Address: "10.1.0.5"}}}, table: outsideTable, to: "10.1.0.5/32",
			none: true},
		{name: "an internet VIP in the internet", in: input{vips: []fabric.VIP{{Address: "198.18.0.1", Internet: true}}}, table: outsideTable,
			to: "198.18.0.1/32", want: hop{link: loopback}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.in.number = func(string) int { return firstRouteTable }
			got, ok := planOf(test.in).routes[destination{test.table, prefix(test.to)}]
			if ok == test.none || got != test.want {
				t.Errorf("%s in table %d: %+v (there: %v), want %+v (there: %v)", test.to, test.table, got, ok, test.want, !test.none)
			}
		})
	}
}

func TestRulesOfAPlan(t *testing.T) {
	t.Parallel()
	numbers := map[string]int{"vtb-system": 1000, "vtb-b": 1001}
	in := input{
		topology: emulator.Topology{
			VSwitches: []emulator.VSwitch{
				{ID: "a", RouteTableID: "vtb-system", Prefix: prefix("10.1.0.0/16")}, {ID: "b", RouteTableID: "vtb-b", Prefix: prefix("10.2.0.0/16")},
			},
			Tables: []emulator.RouteTable{{ID: "vtb-system"}, {ID: "vtb-b"}},
		},
		number: func(id string) int { return numbers[id] },
	}
	endpoint := func(link, ip string, place Place) *port {
		return &port{Endpoint: Endpoint{Name: link, Address: address(ip), Place: place}, link: link}
	}
	in.ports = []*port{
		endpoint("m1", "10.2.0.1", Instance), endpoint("i1", "10.1.0.1", Interface), endpoint("p1", "192.168.0.1", Premises),
		endpoint("o1", "203.0.113.1", Internet), endpoint("c1", "10.0.0.10", controlPlane),
	}
	got := map[string][]int{}
	for _, priority := range []int{vpcPriority, routePriority, outsidePriority} {
		for r := range planOf(in).rules {
			if r.priority == priority {
				got[r.iif] = append(got[r.iif], r.table)
			}
		}
	}
	want := map[string][]int{
		"m1": {vpcTable, 1001}, "i1": {vpcTable, 1000}, "p1": {outsideTable}, "o1": {outsideTable},
		"c1": {vpcTable, 1000, outsideTable}, loopback: {vpcTable, 1000, outsideTable},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the tables that each link's packets ask, in order (-want +got):\n%s", d)
	}
}

func TestGuardOfAPlan(t *testing.T) {
	t.Parallel()
	checked := networkInterface("i-1", true, "10.1.0.1")
	checked.SourceDestCheck = true
	got := planOf(input{
		topology: emulator.Topology{Interfaces: []emulator.NetworkInterface{networkInterface("i-2", true, "10.1.0.2"), checked}},
		ports: []*port{
			instancePort("i-1", "10.1.0.1", "m1"), instancePort("i-2", "10.1.0.2", "m2"),
			{Endpoint: Endpoint{Name: "eci", Address: address("10.1.0.3"), Place: Interface}, link: "i3"},
			{Endpoint: Endpoint{Name: "rack", Address: address("192.168.0.1"), Place: Premises}, link: "p4"},
		},
	}).guard
	want := guard{
		inside: []string{"i3", "m1", "m2"}, checked: []string{"i3", "m1"},
		owned: []owned{{"i3", address("10.1.0.3")}, {"m1", address("10.1.0.1")}, {"m2", address("10.1.0.2")}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(guard{}, owned{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
