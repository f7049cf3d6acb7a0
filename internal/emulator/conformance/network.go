package conformance

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
)

// network is that of an emulator in this process: listeners, clients and backend servers are connected by pipes, so that experiments need
// neither rights nor ports, and run in virtual time.
type network struct {
	// resolve finds the addresses of a name.
	resolve func(name string) ([]netip.Addr, bool)

	mu sync.Mutex
	// sockets are those of listeners, by "ip:port"; guarded by mu like everything below.
	sockets map[string]*streams
	packets map[string]*packets
	// servers are what runs on machines, by "network/ip:port".
	servers map[string]server
}

// server answers one connection, or UDP session. client is whom it sees at the other end.
type server func(c net.Conn, client netip.Addr)

var _ fabric.Network = (*network)(nil)

func newNetwork() *network {
	return &network{sockets: map[string]*streams{}, packets: map[string]*packets{}, servers: map[string]server{}}
}

// cloudsOwn is where machines see connections from that belong to no client.
var cloudsOwn = netip.MustParseAddr("100.64.0.1")

func join(address string, port int) string { return net.JoinHostPort(address, fmt.Sprint(port)) }

// Listen opens the socket of a listener.
func (n *network) Listen(_ context.Context, vip fabric.VIP, port int) (net.Listener, error) {
	s := &streams{at: place(join(vip.Address, port)), conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sockets[string(s.at)] = s
	return s, nil
}

// ListenPacket opens the socket of a UDP listener.
func (n *network) ListenPacket(_ context.Context, vip fabric.VIP, port int) (net.PacketConn, error) {
	s := &packets{at: place(join(vip.Address, port)), in: make(chan packet), done: make(chan struct{}), clients: map[string]chan string{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.packets[string(s.at)] = s
	return s, nil
}

// Source is the address at the other end.
func (n *network) Source(remote net.Addr) netip.AddrPort {
	addr, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return addr
}

// Dial connects to what runs on a machine.
func (n *network) Dial(_ context.Context, _, protocol, addr string, client netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	serve := n.servers[protocol+"/"+addr]
	n.mu.Unlock()
	if serve == nil {
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	}
	seen := client.Addr()
	if !seen.IsValid() {
		seen = cloudsOwn
	}
	here, there := net.Pipe()
	go func() {
		serve(there, seen)
		_ = there.Close()
	}()
	return here, nil
}

// serve runs a server on a machine; nil ends it for new connections.
func (n *network) serve(protocol, address string, port int, s server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[protocol+"/"+join(address, port)] = s
}

// stopServers ends all servers for new connections.
func (n *network) stopServers() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.servers)
}

// patience is how long a client waits for a connection or an answer.
const patience = 5 * time.Second

// connect opens a connection of a client to a listener.
func (n *network) connect(client, address string, port int) (net.Conn, error) {
	n.mu.Lock()
	s := n.sockets[join(address, port)]
	n.mu.Unlock()
	if s == nil {
		return nil, syscall.ECONNREFUSED
	}
	here, there := net.Pipe()
	select {
	case s.conns <- end{there, place(join(client, 40000))}:
		return here, here.SetDeadline(time.Now().Add(patience))
	case <-s.done:
		return nil, syscall.ECONNREFUSED
	}
}

// dialer is [network.connect] as HTTP clients call it.
func (n *network) dialer(client, address string, port int) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return n.connect(client, address, port) }
}

// ask sends a datagram to a UDP listener and returns the answer, "" where none comes.
func (n *network) ask(client, address string, port int, data string) string {
	n.mu.Lock()
	s := n.packets[join(address, port)]
	n.mu.Unlock()
	if s == nil {
		return ""
	}
	from := place(join(client, 40000))
	answers := s.client(string(from))
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case s.in <- packet{data, from}:
	case <-s.done:
		return ""
	}
	select {
	case answer := <-answers:
		return answer
	case <-late.C:
		return ""
	}
}

// place is an "ip:port".
type place string

// Network is part of net.Addr; nobody asks for it.
func (p place) Network() string { return "" }

func (p place) String() string { return string(p) }

// end is a listener's side of a connection.
type end struct {
	net.Conn
	client place
}

// RemoteAddr is the client.
func (e end) RemoteAddr() net.Addr { return e.client }

// streams is the socket of a listener.
type streams struct {
	at    place
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept waits for the next connection.
func (s *streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close closes the socket; what is connected goes on.
func (s *streams) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// Addr is where the socket is.
func (s *streams) Addr() net.Addr { return s.at }

type packet struct {
	data string
	from place
}

// packets is the socket of a UDP listener.
type packets struct {
	at   place
	in   chan packet
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	clients map[string]chan string // guarded by mu
}

// client is where the answers to a client arrive.
func (s *packets) client(from string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[from] == nil {
		s.clients[from] = make(chan string, 1)
	}
	return s.clients[from]
}

// ReadFrom waits for the next datagram.
func (s *packets) ReadFrom(into []byte) (int, net.Addr, error) {
	select {
	case p := <-s.in:
		return copy(into, p.data), p.from, nil
	case <-s.done:
		return 0, nil, net.ErrClosed
	}
}

// WriteTo answers a client. A datagram that nobody waits for is lost.
func (s *packets) WriteTo(data []byte, to net.Addr) (int, error) {
	select {
	case s.client(to.String()) <- string(data):
	default:
	}
	return len(data), nil
}

// Close closes the socket.
func (s *packets) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// LocalAddr is where the socket is.
func (s *packets) LocalAddr() net.Addr { return s.at }

// SetDeadline, SetReadDeadline and SetWriteDeadline are parts of net.PacketConn that the fabric does not use.
func (s *packets) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (s *packets) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (s *packets) SetWriteDeadline(time.Time) error { return nil }

// echo greets every client with a name and whom it sees, and then echoes.
func echo(name string) server {
	return func(c net.Conn, client netip.Addr) {
		if _, err := fmt.Fprintf(c, "%s sees %s", name, client); err == nil {
			_, _ = io.Copy(c, c)
		}
	}
}
