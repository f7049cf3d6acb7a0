//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/vishvananda/netlink"
)

// Place is where an endpoint is attached.
type Place int

const (
	// Instance is an ECS instance: Name is its id. It is connected while the cloud says that it runs, its addresses are those of its
	// network interfaces, and 100.100.100.200 answers with its metadata.
	Instance Place = iota
	// Interface is a network interface of the VPC without an ECS instance behind it: the pod of a virtual node (ECI), or a client in
	// the VPC that is no node. No metadata.
	Interface
	// Premises is a machine outside the cloud: it reaches the control plane and what the internet reaches.
	Premises
	// Internet is a client in the internet: it reaches internet VIPs and the control plane.
	Internet
	// controlPlane is inside the VPC and reaches the premises too.
	controlPlane
)

// inside reports whether a place is in the VPC.
func (p Place) inside() bool { return p == Instance || p == Interface || p == controlPlane }

// letter begins the names of links in the cloud's namespace.
func (p Place) letter() string { return [...]string{"m", "i", "p", "o", "c"}[p] }

// Endpoint is something to attach to the network.
type Endpoint struct {
	// Name is the id of an Instance, and any unique name otherwise: letters, digits, dots and hyphens.
	Name    string
	Address netip.Addr
	Place   Place
}

// port is where an endpoint is plugged in.
type port struct {
	Endpoint
	link     string // in the cloud's namespace
	table    int    // says where replies of sockets bound to the link go: through it
	ns       *Namespace
	metadata *metadataServer // nil for what is no instance
}

// gateway is the next hop of every machine. It is link-local: the cloud answers for it on every link, so no vSwitch has to spend an
// address.
var gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,60}$`)

// Attach makes the namespace of an endpoint: eth0 with the address, a default route, forwarding on. Attaching a name or
// an address twice is an error.
func (n *Network) Attach(ctx context.Context, e Endpoint) (*Namespace, error) {
	if !names.MatchString(e.Name) || !e.Address.Is4() {
		return nil, fmt.Errorf("attach %q with address %s: want a name of letters, digits, dots and hyphens, and an IPv4 address", e.Name,
			e.Address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		if p.Name == e.Name || p.Address == e.Address {
			return nil, fmt.Errorf("attach %s with address %s: an endpoint of that name or address is attached", e.Name, e.Address)
		}
	}
	ns, err := makeNamespace(n.options.Prefix + "-" + e.Name)
	if err != nil {
		return nil, err
	}
	n.made++
	p := &port{Endpoint: e, link: fmt.Sprintf("%s%d", e.Place.letter(), n.made), table: firstLinkTable + n.made, ns: ns}
	n.ports[e.Name] = p
	if err := n.plug(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("attach %s: %w", e.Name, err), n.unplug(e.Name))
	}
	return ns, nil
}

// plug makes the link of a port and what belongs to it.
func (n *Network) plug(ctx context.Context, p *port) error {
	if err := n.kernel.addLink(p); err != nil {
		return err
	}
	if err := setUpMachine(p.ns, p.Address); err != nil {
		return err
	}
	if err := n.sync(); err != nil {
		return err
	}
	if p.Place != Instance {
		return nil
	}
	var err error
	p.metadata, err = n.serveMetadata(ctx, p)
	return err
}

// Detach cuts an endpoint off at once and removes its namespace. Processes that run in it keep it alive, without network. An unknown
// name is no error.
func (n *Network) Detach(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unplug(name)
}

func (n *Network) unplug(name string) error {
	p, ok := n.ports[name]
	if !ok {
		return nil
	}
	delete(n.ports, name)
	// The link first: with it the endpoint is off the network, whatever fails afterwards.
	errs := []error{n.kernel.removeLink(p.link)}
	if p.metadata != nil {
		errs = append(errs, p.metadata.close())
	}
	if !n.closed {
		errs = append(errs, n.sync())
	}
	return errors.Join(append(errs, p.ns.remove())...)
}

// setUpMachine gives a namespace its address and its default route, as a machine's DHCP client would.
func setUpMachine(ns *Namespace, address netip.Addr) error {
	handle, err := netlink.NewHandleAt(ns.handle)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", ns.Name, err)
	}
	defer handle.Close()
	lo, err := handle.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("namespace %s: %w", ns.Name, err)
	}
	eth0, err := handle.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("namespace %s: %w", ns.Name, err)
	}
	via := netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: ipNet(host(gateway)), Scope: netlink.SCOPE_LINK}
	rest := netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway.AsSlice()}
	for _, step := range []func() error{
		func() error { return handle.LinkSetUp(lo) },
		func() error { return handle.AddrAdd(eth0, &netlink.Addr{IPNet: ipNet(host(address))}) },
		func() error { return handle.LinkSetUp(eth0) },
		func() error { return handle.RouteAdd(&via) },
		func() error { return handle.RouteAdd(&rest) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("set up eth0 of %s: %w", ns.Name, err)
		}
	}
	return ns.sysctl(map[string]string{
		"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0", "ipv4/conf/eth0/rp_filter": "0",
		"ipv6/conf/eth0/disable_ipv6": "1",
	})
}
