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
	arrival    arrival
	balanced   bool
}

// Dial opens a connection from a machine to "host:port" the way the VPC would: an address of a machine goes to it, the VIP
// of an active load balancer to its listener, and an address inside an Available route of the machine's vSwitch to the route's next
// hop, if that runs and forwards for others. Everything else is an UnreachableError. The host may be the name of an NLB.
func (f *Fabric) Dial(ctx context.Context, from, network, addr string) (net.Conn, error) {
	return f.dialHost(ctx, network, addr, from, func(host netip.Addr, port int) (next hop, reason string) {
		next, reason = f.nextHop(from, host, port, network, f.store.Now())
		if next.balanced {
			next.arrival.source, reason = f.sourceOf(from, host)
		}
		return next, reason
	})
}

// DialVIP opens a connection from the internet: only public addresses of load balancers answer there. The host may be the name of an NLB.
func (f *Fabric) DialVIP(ctx context.Context, network, addr string) (net.Conn, error) {
	return f.dialHost(ctx, network, addr, "the internet", func(host netip.Addr, port int) (next hop, reason string) {
		reason = "no internet load balancer has the address"
		for lb := range f.loadBalancers(f.store.Now()) {
			if v, ok := lb.has(host); ok && v.Internet {
				next, reason = lb.behind(v, port, network)
			}
		}
		next.arrival.source = internet
		if host.Is6() {
			next.arrival.source = internet6
		}
		return next, reason
	})
}

// dialHost tries the addresses of a host until one of them takes the connection. decide is the route decision; it runs under the store's
// lock, and a reason means that there is no way.
func (f *Fabric) dialHost(ctx context.Context, network, addr, from string, decide func(netip.Addr, int) (hop, string)) (net.Conn, error) {
	hosts, port, err := f.hosts(addr)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, host := range hosts {
		addr := net.JoinHostPort(host.String(), strconv.Itoa(port))
		var next hop
		reason := ""
		f.store.View(func() { next, reason = decide(host, port) })
		c, err := f.take(ctx, next, network, addr, from, reason)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// ephemeral is the port from which in-process connections seem to come; they have no real one.
const ephemeral = 49152

// sourceOf is where connections of a machine to a host come from: its address of the host's IP version. The caller holds the store's lock.
func (f *Fabric) sourceOf(from string, host netip.Addr) (source netip.AddrPort, reason string) {
	for _, eni := range f.store.InterfacesOf(from) {
		for _, ip := range slices.Concat(eni.PrivateIPs, eni.IPv6s) {
			if addr, err := netip.ParseAddr(ip); err == nil && addr.Is4() == host.Is4() {
				return netip.AddrPortFrom(addr, ephemeral), ""
			}
		}
	}
	return netip.AddrPort{}, "the machine has no address of this IP version"
}

// internet and internet6 are where in-process connections from outside seem to come from: addresses reserved for documentation.
var (
	internet  = netip.MustParseAddrPort("203.0.113.1:49152")
	internet6 = netip.MustParseAddrPort("[2001:db8:1234::1]:49152")
)

// take takes the one step that the route decision named.
func (f *Fabric) take(ctx context.Context, next hop, network, addr, from, reason string) (net.Conn, error) {
	switch {
	case reason != "":
		return nil, &UnreachableError{From: from, To: addr, Reason: reason}
	case next.balanced && isWeb(next.arrival.listener.Protocol):
		return f.dialWeb(ctx, next.arrival)
	case next.balanced && next.arrival.listener.Protocol == tcpSSL:
		return f.dialTLS(ctx, next.arrival)
	case next.balanced:
		return f.dialListener(ctx, next.arrival)
	default:
		return f.dialMachine(ctx, next.instanceID, network, addr)
	}
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
	for lb := range f.loadBalancers(now) {
		if v, found := lb.has(host); found && (v.Internet || lb.vpcID == source.VPCID) {
			return lb.behind(v, port, network)
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

// dialMachine connects to a machine and remembers the connection, so that it breaks when the machine goes.
func (f *Fabric) dialMachine(ctx context.Context, instanceID, network, addr string) (net.Conn, error) {
	c, err := f.network.Dial(ctx, instanceID, network, addr, netip.AddrPort{})
	if err != nil {
		return nil, fmt.Errorf("dial %s on %s: %w", addr, instanceID, err)
	}
	return f.conns.add(&conn{Conn: c, instanceID: instanceID}), nil
}

// dialListener opens a connection through a layer 4 listener.
func (f *Fabric) dialListener(ctx context.Context, a arrival) (net.Conn, error) {
	c, s, err := f.balance(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := introduce(ctx, c, s, a); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// dialWeb opens a connection to the HTTP or HTTPS server of a listener.
func (f *Fabric) dialWeb(ctx context.Context, a arrival) (net.Conn, error) {
	front, err := f.frontend(ctx, a.listener)
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	if !front.serveWeb(&client{Conn: there, arrival: a}) {
		return nil, errors.Join(refused(a), here.Close(), there.Close())
	}
	return here, nil
}

// dialTLS opens a connection to a listener that ends TLS.
func (f *Fabric) dialTLS(ctx context.Context, a arrival) (net.Conn, error) {
	front, err := f.frontend(ctx, a.listener)
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	if s, ok := f.read(a.listener); !ok || !s.admits(a) || !f.serve(front, &client{Conn: there, arrival: a}) {
		return nil, errors.Join(refused(a), here.Close(), there.Close())
	}
	return here, nil
}
