package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// UnreachableError says why the network did not carry a connection. It is a syscall.EHOSTUNREACH.
type UnreachableError struct{ From, To, Reason string }

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("dial %s from %s: no route to host: %s", e.To, e.From, e.Reason)
}

// Unwrap makes the error a syscall.EHOSTUNREACH.
func (e *UnreachableError) Unwrap() error { return syscall.EHOSTUNREACH }

// hop is where a connection goes next: to a machine, or to a listener.
type hop struct {
	instanceID string
	listener   socketKey
	balanced   bool
}

// Dial opens a connection from a machine to "ip:port" the way the VPC would: an address of a machine goes to it, the VIP
// of an active CLB to its listener, and an address inside an Available route of the machine's vSwitch to the route's next
// hop, if that runs and forwards for others. Everything else is an UnreachableError.
func (f *Fabric) Dial(ctx context.Context, from, network, addr string) (net.Conn, error) {
	host, port, err := split(addr)
	if err != nil {
		return nil, err
	}
	var next hop
	reason := ""
	source := netip.AddrPort{}
	f.store.View(func() {
		next, reason = f.nextHop(from, host, port, network, time.Now())
		if i, ok := f.store.Instances.Get(from); ok {
			source = machineSource(i.PrivateIP)
		}
	})
	return f.take(ctx, next, network, addr, from, reason, source)
}

// ephemeral is the port from which in-process connections seem to come; they have no real one.
const ephemeral = 49152

func machineSource(ip string) netip.AddrPort {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, ephemeral)
}

// internet is where in-process connections from outside seem to come from: an address reserved for documentation.
var internet = netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, 1}), ephemeral)

// DialVIP opens a connection from the internet: only internet CLBs answer there.
func (f *Fabric) DialVIP(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := split(addr)
	if err != nil {
		return nil, err
	}
	var next hop
	reason := "no internet load balancer has the address"
	f.store.View(func() {
		now := time.Now()
		for lb := range f.store.LoadBalancers.All() {
			if v, ok := has(f.vipsOf(lb, now), host); ok && v.Internet {
				next, reason = vip(lb, port, network, now)
			}
		}
	})
	return f.take(ctx, next, network, addr, "the internet", reason, internet)
}

// take takes the one step that the route decision named.
func (f *Fabric) take(ctx context.Context, next hop, network, addr, from, reason string, source netip.AddrPort) (net.Conn, error) {
	switch {
	case reason != "":
		return nil, &UnreachableError{From: from, To: addr, Reason: reason}
	case next.balanced && isWeb(next.listener.Protocol):
		return f.dialWeb(ctx, next.listener, source)
	case next.balanced:
		return f.dialListener(ctx, next.listener, source)
	default:
		return f.dialMachine(ctx, next.instanceID, network, addr)
	}
}

func split(addr string) (netip.Addr, int, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("dial %q: %w", addr, err)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("dial %q: %w", addr, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("dial %q: %w", addr, err)
	}
	return ip, n, nil
}

// nextHop is the route decision; it runs under the store's lock. A reason means that there is none.
func (f *Fabric) nextHop(from string, host netip.Addr, port int, network string, now time.Time) (hop, string) {
	source, ok := f.store.Instances.Get(from)
	if !ok || source.Status(now) != cloud.Running {
		return hop{}, "the machine does not run"
	}
	if eni, taken := f.store.InterfaceByIP(source.VPCID, host.String()); taken {
		return f.machine(eni.InstanceID, now)
	}
	for lb := range f.store.LoadBalancers.All() {
		if v, found := has(f.vipsOf(lb, now), host); found && (v.Internet || lb.VPCID == source.VPCID) {
			return vip(lb, port, network, now)
		}
	}
	vsw, ok := f.store.VSwitches.Get(source.VSwitchID)
	if !ok {
		return hop{}, "the machine has no vSwitch"
	}
	table, ok := f.store.RouteTables.Get(vsw.RouteTableID)
	if !ok {
		return hop{}, "the vSwitch has no route table"
	}
	return f.route(table, host, now)
}

// route follows the table's entry for an address.
func (f *Fabric) route(table *cloud.RouteTable, host netip.Addr, now time.Time) (hop, string) {
	entry, ok := table.Lookup(host, now)
	switch {
	case !ok:
		return hop{}, "no available entry of route table " + table.ID + " holds the address"
	case entry.System:
		return hop{}, "nobody in the vSwitch has the address"
	case entry.NextHopType != "Instance":
		return hop{}, "the next hop of " + entry.CIDR.String() + " is not an instance"
	}
	next, reason := f.machine(entry.NextHopID, now)
	if reason != "" {
		return next, reason
	}
	if i, ok := f.store.Instances.Get(entry.NextHopID); ok && i.PrimaryInterface.SourceDestCheck {
		return hop{}, "the next hop " + i.ID + " checks source and destination and drops the traffic of others"
	}
	return next, ""
}

func (f *Fabric) machine(id string, now time.Time) (hop, string) {
	i, ok := f.store.Instances.Get(id)
	switch {
	case !ok && f.store.IsContainer(id):
		return hop{instanceID: id}, ""
	case !ok:
		return hop{}, "the instance " + id + " does not exist"
	case i.Status(now) != cloud.Running:
		return hop{}, "the instance " + id + " is " + i.Status(now)
	}
	return hop{instanceID: id}, ""
}

// vipsOf are the addresses of a load balancer: its own first, then the elastic ones that are bound to it.
func (f *Fabric) vipsOf(lb *cloud.LoadBalancer, now time.Time) []VIP {
	vips := []VIP{{lb.Address, lb.AddressType == "internet"}}
	for e := range f.store.EIPs.All() {
		if e.Holder(now) == lb.ID {
			vips = append(vips, VIP{e.Address, true})
		}
	}
	return vips
}

// has finds an address among those of a load balancer.
func has(vips []VIP, host netip.Addr) (VIP, bool) {
	i := slices.IndexFunc(vips, func(v VIP) bool { return v.Address == host.String() })
	if i < 0 {
		return VIP{}, false
	}
	return vips[i], true
}

// vip finds the listener behind a VIP.
func vip(lb *cloud.LoadBalancer, port int, network string, now time.Time) (hop, string) {
	for _, l := range lb.SortedListeners() {
		if l.Port == port && transport(l.Protocol) == network && carries(lb, l, now) {
			return hop{listener: socketKey{lb.ID, l.ListenerKey}, balanced: true}, ""
		}
	}
	return hop{}, "the load balancer " + lb.ID + " has no running listener there"
}

// transport is the network that a listener's protocol travels on.
func transport(protocol string) string {
	if protocol == "udp" {
		return "udp"
	}
	return "tcp"
}

// carries reports whether a listener takes connections now.
func carries(lb *cloud.LoadBalancer, l *cloud.Listener, now time.Time) bool {
	return lb.Status == cloud.Active && l.Phase.At(now) == cloud.ListenerRunning
}

// dialMachine connects to a machine and remembers the connection, so that it breaks when the machine goes.
func (f *Fabric) dialMachine(ctx context.Context, instanceID, network, addr string) (net.Conn, error) {
	c, err := f.network.Dial(ctx, instanceID, network, addr, netip.AddrPort{})
	if err != nil {
		return nil, fmt.Errorf("dial %s on %s: %w", addr, instanceID, err)
	}
	return f.conns.add(&conn{Conn: c, instanceID: instanceID}), nil
}

// dialListener opens a connection through a layer 4 listener.
func (f *Fabric) dialListener(ctx context.Context, key socketKey, source netip.AddrPort) (net.Conn, error) {
	c, s, err := f.balance(ctx, key, source)
	if err != nil {
		return nil, err
	}
	if err := introduce(ctx, c, s, source); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// dialWeb opens a connection to the HTTP or HTTPS server of a listener.
func (f *Fabric) dialWeb(ctx context.Context, key socketKey, source netip.AddrPort) (net.Conn, error) {
	front, err := f.frontend(ctx, key)
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	if !front.serveWeb(&client{Conn: there, source: source}) {
		return nil, errors.Join(fmt.Errorf("listener %s of %s: %w", key, key.lb, ErrNotAdmitted), here.Close(), there.Close())
	}
	return here, nil
}
