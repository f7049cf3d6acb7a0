//go:build linux

package vpcnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernel carries plans out in the cloud's namespace. It has no lock of its own: its callers hold the network's.
type kernel struct {
	ns     *Namespace
	handle *netlink.Handle
	// have is what has been carried out so far, also of a plan that failed half-way.
	have plan
}

func newKernel(ns *Namespace) (*kernel, error) {
	handle, err := netlink.NewHandleAt(ns.handle)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", ns.Name, err)
	}
	k := &kernel{ns: ns, handle: handle, have: plan{routes: map[destination]hop{}, rules: map[rule]bool{}, links: map[string]bool{}}}
	if err := k.setUp(); err != nil {
		handle.Close()
		return nil, fmt.Errorf("set up the router %s: %w", ns.Name, err)
	}
	return k, nil
}

func (k *kernel) close() { k.handle.Close() }

// setUp makes the namespace a router. Paths through it are asymmetric (a reply to a client comes from the load balancer), so the
// kernel's own source check must be off; the guard has a stricter one.
func (k *kernel) setUp() error {
	lo, err := k.handle.LinkByName(loopback)
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := k.handle.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	if err := k.handle.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(host(gateway))}); err != nil {
		return fmt.Errorf("give lo the gateway's address: %w", err)
	}
	return k.ns.sysctl(map[string]string{
		"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
		"ipv4/conf/all/send_redirects": "0", "ipv4/conf/default/send_redirects": "0",
		"ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1",
		// A machine that asks for an unreachable address again and again gets an answer each second, not each time; without this, hardly ever.
		"ipv4/icmp_ratelimit": "0",
	})
}

// addLink makes the link of a port; the other end is eth0 of the port's namespace.
func (k *kernel) addLink(p *port) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = p.link
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(p.ns.handle)}
	if err := k.handle.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the link %s: %w", p.link, err)
	}
	// For whoever looks with ip(8): a link says whose it is.
	if err := k.handle.LinkSetAlias(pair, p.Name); err != nil {
		return fmt.Errorf("name the link %s: %w", p.link, err)
	}
	return nil
}

// removeLink takes a link away, and with it what its other end sends and receives.
func (k *kernel) removeLink(name string) error {
	delete(k.have.links, name)
	link, err := k.find(name)
	if err != nil || link == nil {
		return err
	}
	if err := k.handle.LinkDel(link); err != nil {
		return fmt.Errorf("remove the link %s: %w", name, err)
	}
	return nil
}

// find returns a link, or nil when it is not there: a machine that deletes its eth0 takes our end away, and is cut off by it.
func (k *kernel) find(name string) (netlink.Link, error) {
	link, err := k.handle.LinkByName(name)
	var unknown netlink.LinkNotFoundError
	if errors.As(err, &unknown) {
		return nil, nil //nolint:nilnil // absence is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("find the link %s: %w", name, err)
	}
	return link, nil
}

// apply brings the kernel in line. Links come up before the routes through them, and what is new is there before what is old goes: a
// packet finds the one or the other.
func (k *kernel) apply(want plan) error {
	for name, up := range want.links {
		if err := k.setLink(name, up, true); err != nil {
			return err
		}
	}
	if err := k.applyGuard(want.guard); err != nil {
		return err
	}
	for to, h := range want.routes {
		if err := k.replaceRoute(to, h); err != nil {
			return err
		}
	}
	for r := range want.rules {
		if err := k.addRule(r); err != nil {
			return err
		}
	}
	if err := k.removeOld(want); err != nil {
		return err
	}
	for name, up := range want.links {
		if err := k.setLink(name, up, false); err != nil {
			return err
		}
	}
	return nil
}

func (k *kernel) removeOld(want plan) error {
	for r := range k.have.rules {
		if want.rules[r] {
			continue
		}
		if err := k.handle.RuleDel(netlinkRule(r)); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove the rule %+v: %w", r, err)
		}
		delete(k.have.rules, r)
	}
	for to := range k.have.routes {
		if _, wanted := want.routes[to]; wanted {
			continue
		}
		// A route has gone by itself when its link has. Nowhere is any scope: with another one than the route's, which differs between VIPs,
		// links and gateways, the kernel says that there is no such route.
		route := netlink.Route{Dst: ipNet(to.prefix), Table: to.table, Scope: netlink.SCOPE_NOWHERE}
		if err := k.handle.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove the route %s from table %d: %w", to.prefix, to.table, err)
		}
		delete(k.have.routes, to)
	}
	return nil
}

// setLink sets a link up or down, if that is the turn now.
func (k *kernel) setLink(name string, up, turn bool) error {
	if have, known := k.have.links[name]; up != turn || (known && have == up) {
		return nil
	}
	link, err := k.find(name)
	if err != nil || link == nil {
		return err
	}
	set := k.handle.LinkSetDown
	if up {
		set = k.handle.LinkSetUp
	}
	if err := set(link); err != nil {
		return fmt.Errorf("set the link %s up or down: %w", name, err)
	}
	k.have.links[name] = up
	return nil
}

func (k *kernel) replaceRoute(to destination, h hop) error {
	if have, known := k.have.routes[to]; known && have == h {
		return nil
	}
	route := netlink.Route{Dst: ipNet(to.prefix), Table: to.table, Type: unix.RTN_UNREACHABLE}
	var link netlink.Link
	if h.link != "" {
		var err error
		if link, err = k.find(h.link); err != nil {
			return err
		}
	}
	if link != nil {
		route.LinkIndex, route.Type, route.Scope = link.Attrs().Index, unix.RTN_UNICAST, netlink.SCOPE_LINK
	}
	switch {
	case link == nil:
	case h.link == loopback:
		route.Type, route.Scope = unix.RTN_LOCAL, netlink.SCOPE_HOST
	case h.via.IsValid():
		// The machine is at the other end of the link, whatever its address.
		route.Gw, route.Flags, route.Scope = h.via.AsSlice(), int(netlink.FLAG_ONLINK), netlink.SCOPE_UNIVERSE
	}
	if err := k.handle.RouteReplace(&route); err != nil {
		return fmt.Errorf("route %s in table %d: %w", to.prefix, to.table, err)
	}
	k.have.routes[to] = h
	return nil
}

func (k *kernel) addRule(r rule) error {
	if k.have.rules[r] {
		return nil
	}
	if err := k.handle.RuleAdd(netlinkRule(r)); err != nil {
		return fmt.Errorf("add the rule %+v: %w", r, err)
	}
	k.have.rules[r] = true
	return nil
}

func netlinkRule(r rule) *netlink.Rule {
	n := netlink.NewRule()
	n.Family, n.Priority, n.Table, n.IifName, n.OifName, n.Mark = unix.AF_INET, r.priority, r.table, r.iif, r.oif, r.mark
	return n
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
