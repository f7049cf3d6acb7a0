//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
)

var _ fabric.Network = (*Network)(nil)

// balancerSource is the address that layer 7 listeners and health checks come from, one of the cloud's services range.
var balancerSource = netip.AddrFrom4([4]byte{100, 64, 0, 1})

// Listen opens a listener on a VIP. The VIP is reachable while one of its sockets is open.
func (n *Network) Listen(ctx context.Context, vip fabric.VIP, port int) (net.Listener, error) {
	l, err := n.cloud.Listen(ctx, net.JoinHostPort(vip.Address, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen on VIP %s: %w", vip.Address, err)
	}
	if err := n.hold(vip); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &vipListener{Listener: l, release: sync.OnceValue(func() error { return n.letGo(vip) })}, nil
}

// ListenPacket opens a UDP socket on a VIP.
func (n *Network) ListenPacket(ctx context.Context, vip fabric.VIP, port int) (net.PacketConn, error) {
	p, err := n.cloud.ListenPacket(ctx, net.JoinHostPort(vip.Address, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen on VIP %s: %w", vip.Address, err)
	}
	if err := n.hold(vip); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &vipSocket{PacketConn: p, release: sync.OnceValue(func() error { return n.letGo(vip) })}, nil
}

// Source is the address at the other end: addresses here are those of the cloud.
func (n *Network) Source(remote net.Addr) netip.AddrPort {
	addr, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// Dial connects from the cloud to a machine. With a client the machine sees the client's address; the client's port too, unless an earlier
// connection of the same client to the same backend server has it. As behind a real load balancer at layer 4, a backend server cannot be
// its own client: its kernel drops packets from its own address.
func (n *Network) Dial(ctx context.Context, _, network, addr string, client netip.AddrPort) (net.Conn, error) {
	if !client.Addr().Is4() {
		client = netip.AddrPortFrom(balancerSource, 0)
	}
	c, err := n.dialFrom(ctx, network, addr, client)
	if client.Port() != 0 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
		c, err = n.dialFrom(ctx, network, addr, netip.AddrPortFrom(client.Addr(), 0))
	}
	return c, err
}

func (n *Network) dialFrom(ctx context.Context, network, addr string, source netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Control: control(transparent, reusable), LocalAddr: net.TCPAddrFromAddrPort(source)}
	if network == "udp" {
		d.LocalAddr = net.UDPAddrFromAddrPort(source)
	}
	return n.cloud.dial(ctx, &d, network, addr)
}

func (n *Network) hold(vip fabric.VIP) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.vips[vip]++
	return n.sync()
}

func (n *Network) letGo(vip fabric.VIP) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.vips[vip]--; n.vips[vip] > 0 || n.closed {
		return nil
	}
	delete(n.vips, vip)
	return n.sync()
}

type vipListener struct {
	net.Listener
	release func() error
}

// Close closes the listener and, with the last socket, takes the VIP away.
func (l *vipListener) Close() error { return errors.Join(l.Listener.Close(), l.release()) }

type vipSocket struct {
	net.PacketConn
	release func() error
}

// Close closes the socket and, with the last one, takes the VIP away.
func (s *vipSocket) Close() error { return errors.Join(s.PacketConn.Close(), s.release()) }
