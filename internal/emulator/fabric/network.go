package fabric

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// VIP is the address of a load balancer.
type VIP struct {
	Address string
	// Internet is set for a VIP that everybody reaches, not only the VPC.
	Internet bool
	// Zone is that of an address of an NLB, which has one in each of its zones; "" for other VIPs.
	Zone string
}

// Network opens the fabric's sockets. There are two: loopback addresses of this host, which is the default and needs no
// rights, and package vpcnet of the sandbox, which has VIPs and machines in the kernel. Implementations are called by many
// goroutines at once.
type Network interface {
	// Listen and ListenPacket open the socket of a listener.
	Listen(ctx context.Context, vip VIP, port int) (net.Listener, error)
	ListenPacket(ctx context.Context, vip VIP, port int) (net.PacketConn, error)
	// Source is the cloud's address of whoever is at the other end of a socket.
	Source(remote net.Addr) netip.AddrPort
	// Dial connects to addr ("ip:port") of a machine. A valid client is whom the machine should see as the source, as layer
	// 4 listeners keep it; an invalid one means the load balancer itself: layer 7 listeners and health checks.
	Dial(ctx context.Context, instanceID, network, addr string, client netip.AddrPort) (net.Conn, error)
}

// loopbackNetwork is the network on 127.0.0.0/8.
type loopbackNetwork struct {
	*addresses
	machines Machines
}

// Listen opens the socket on the VIP's loopback address.
func (n loopbackNetwork) Listen(ctx context.Context, vip VIP, port int) (net.Listener, error) {
	return place(n.loopback(vip.Address), port, func(c *net.ListenConfig, addr string) (net.Listener, error) {
		return c.Listen(ctx, "tcp", addr)
	})
}

// ListenPacket opens the socket on the VIP's loopback address.
func (n loopbackNetwork) ListenPacket(ctx context.Context, vip VIP, port int) (net.PacketConn, error) {
	return place(n.loopback(vip.Address), port, func(c *net.ListenConfig, addr string) (net.PacketConn, error) {
		return c.ListenPacket(ctx, "udp", addr)
	})
}

// Source is the address that the loopback address of the other end stands for.
func (n loopbackNetwork) Source(remote net.Addr) netip.AddrPort { return n.source(remote) }

// Dial asks the machines. They see a loopback address as the source, whoever the client is.
func (n loopbackNetwork) Dial(ctx context.Context, instanceID, network, addr string, _ netip.AddrPort) (net.Conn, error) {
	return n.machines.Dial(ctx, instanceID, network, addr)
}

// place tries the listener's port. Where that is not possible it takes another one (the port is privileged or in use), and
// where the host has no such address, 127.0.0.1.
func place[S any](host string, port int, listen func(*net.ListenConfig, string) (S, error)) (S, error) {
	var c net.ListenConfig
	socket, err := listen(&c, net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EADDRINUSE) {
		socket, err = listen(&c, net.JoinHostPort(host, "0"))
	}
	if err != nil {
		socket, err = listen(&c, "127.0.0.1:0")
	}
	return socket, err
}
