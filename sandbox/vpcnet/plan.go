//go:build linux

package vpcnet

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
)

// Kernel route tables of the cloud's namespace. `ip -n <prefix>-cloud route show table N` shows one.
const (
	// balancerTable delivers packets to the load balancer's own sockets that have the address of a client.
	balancerTable = 100
	// outsideTable is what the internet and the premises reach.
	outsideTable = 101
	// vpcTable is what everybody in the VPC reaches, whatever the route tables say.
	vpcTable = 102
	// From here on, a table for each route table of the VPC, and one for each link.
	firstRouteTable = 1000
	firstLinkTable  = 100000
)

// Priorities of the policy rules. The kernel asks them in this order, and the next one when a table has no route.
const (
	replyPriority    = 10 // sockets bound to a link answer through it
	balancerPriority = 20
	vpcPriority      = 30
	routePriority    = 40
	outsidePriority  = 50
)

// balancerMark is on packets for sockets of the load balancer.
const balancerMark = 1

// loopback is where the cloud's own sockets send from.
const loopback = "lo"

// services is the range of the cloud's own services: load balancers' health checks come from it, metadata is in it.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/user-guide/faq-about-backend-servers
var services = netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10)

// destination is the key of a kernel route.
type destination struct {
	table  int
	prefix netip.Prefix
}

// hop is where a kernel route leads: through a link, to the cloud's own sockets (loopback), or nowhere ("").
type hop struct {
	link string
	// via is the address of the machine at the other end; not set when the destination itself is there.
	via netip.Addr
}

// rule is a policy rule: which table what comes in (iif) or goes out (oif) follows.
type rule struct {
	priority, table int
	iif, oif        string
	mark            uint32
}

// owned is an address that a link may send from and receive for.
type owned struct {
	link    string
	address netip.Addr
}

// plan is what the kernel should hold for the cloud's namespace. Plans are compared, and the difference is carried out.
type plan struct {
	routes map[destination]hop
	rules  map[rule]bool
	// links says which are up.
	links map[string]bool
	guard guard
}

// guard is the source and destination check. Its slices are sorted.
type guard struct {
	// inside are the links of the VPC, where backend servers of load balancers are.
	inside []string
	// checked links carry only packets from and to addresses that they own.
	checked []string
	owned   []owned
}

// input is what a plan is made from.
type input struct {
	topology emulator.Topology
	ports    []*port
	vips     []fabric.VIP
	// number is the kernel table of a route table.
	number func(routeTableID string) int
}

// planOf decides what the kernel should hold.
func planOf(in input) plan {
	p := plan{routes: map[destination]hop{}, rules: map[rule]bool{}, links: map[string]bool{}}
	p.route(balancerTable, everything, hop{link: loopback})
	p.route(vpcTable, services, hop{link: loopback})
	p.rules[rule{priority: balancerPriority, table: balancerTable, mark: balancerMark}] = true
	p.vips(in.vips)
	attached := p.interfaces(in)
	for _, port := range in.ports {
		p.port(in, port)
	}
	p.follow(loopback, in, in.systemTable())
	p.rules[rule{priority: outsidePriority, table: outsideTable, iif: loopback}] = true
	p.routeTables(in, attached)
	p.guard.sort()
	return p
}

var everything = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

func (p *plan) route(table int, to netip.Prefix, h hop) { p.routes[destination{table, to}] = h }

// vips makes load balancers reachable: internet ones for everybody, intranet ones in the VPC.
func (p *plan) vips(vips []fabric.VIP) {
	for _, vip := range vips {
		addr, err := netip.ParseAddr(vip.Address)
		if err != nil {
			continue
		}
		p.route(vpcTable, host(addr), hop{link: loopback})
		if vip.Internet {
			p.route(outsideTable, host(addr), hop{link: loopback})
		}
	}
}

// interfaces makes machines reachable and returns their ports by instance id. The addresses of a machine that does not run lead
// nowhere, so that whoever asks learns it at once.
func (p *plan) interfaces(in input) map[string]*port {
	attached := map[string]*port{}
	for _, eni := range in.topology.Interfaces {
		i := slices.IndexFunc(in.ports, func(port *port) bool { return port.Place == Instance && port.Name == eni.InstanceID })
		if i < 0 {
			continue
		}
		port := in.ports[i]
		if eni.Running {
			p.links[port.link] = true
			attached[port.Name] = port
		}
		for _, addr := range eni.Addresses {
			switch {
			case !eni.Running:
				p.route(vpcTable, host(addr), hop{})
			case addr == port.Address:
				p.route(vpcTable, host(addr), hop{link: port.link})
			default:
				p.route(vpcTable, host(addr), hop{link: port.link, via: port.Address})
			}
			p.guard.owned = append(p.guard.owned, owned{port.link, addr})
		}
		if eni.SourceDestCheck && !slices.Contains(p.guard.checked, port.link) {
			p.guard.checked = append(p.guard.checked, port.link)
		}
	}
	return attached
}

// port makes the rules of a link, and the routes to what is no instance.
func (p *plan) port(in input, port *port) {
	up := p.links[port.link] || port.Place != Instance
	p.links[port.link] = up
	p.rules[rule{priority: replyPriority, table: port.table, oif: port.link}] = true
	if up {
		p.route(port.table, everything, hop{link: port.link, via: port.Address})
	}
	if port.Place.inside() {
		p.guard.inside = append(p.guard.inside, port.link)
		p.follow(port.link, in, in.tableOf(port))
	}
	if port.Place == Interface {
		p.guard.checked = append(p.guard.checked, port.link)
		p.guard.owned = append(p.guard.owned, owned{port.link, port.Address})
	}
	if port.Place == Interface || port.Place == controlPlane {
		p.route(vpcTable, host(port.Address), hop{link: port.link})
	}
	if port.Place == Premises || port.Place == Internet || port.Place == controlPlane {
		p.route(outsideTable, host(port.Address), hop{link: port.link})
		p.rules[rule{priority: outsidePriority, table: outsideTable, iif: port.link}] = true
	}
}

// follow lets what comes from a link follow a route table of the VPC.
func (p *plan) follow(link string, in input, routeTableID string) {
	p.rules[rule{priority: vpcPriority, table: vpcTable, iif: link}] = true
	if routeTableID != "" {
		p.rules[rule{priority: routePriority, table: in.number(routeTableID), iif: link}] = true
	}
}

// routeTables are the custom entries. One whose next hop is not there leads nowhere, also where a shorter one would lead somewhere.
func (p *plan) routeTables(in input, attached map[string]*port) {
	for _, table := range in.topology.Tables {
		for _, r := range table.Routes {
			if !r.CIDR.Addr().Is4() {
				continue // this network has no IPv6
			}
			to := hop{}
			if server, ok := attached[r.InstanceID]; ok {
				to = hop{link: server.link, via: server.Address}
			}
			p.route(in.number(table.ID), r.CIDR.Masked(), to)
		}
	}
}

// systemTable is the route table of what is in no vSwitch, the load balancers first of all.
func (in input) systemTable() string {
	if len(in.topology.Tables) == 0 {
		return ""
	}
	return in.topology.Tables[0].ID
}

// tableOf is the route table of the vSwitch that an endpoint is in.
func (in input) tableOf(port *port) string {
	for _, v := range in.topology.VSwitches {
		if v.Prefix.Contains(port.Address) {
			return v.RouteTableID
		}
	}
	return in.systemTable()
}

func (g *guard) sort() {
	slices.Sort(g.inside)
	slices.Sort(g.checked)
	slices.SortFunc(g.owned, func(a, b owned) int { return cmp.Or(cmp.Compare(a.link, b.link), a.address.Compare(b.address)) })
}
