package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// dialTimeout bounds how long a client of a listener waits for a backend server: a machine that swallows packets must not hold
// the client for ever.
const dialTimeout = 5 * time.Second

// portsWithSockets is how many ports of a range have sockets, from its first one: a range of all ports would take all that a process may
// open. Connections from within this process reach every port.
const portsWithSockets = 1024

// Endpoint is where a listener accepts connections to an address of its load balancer.
type Endpoint struct {
	Address string
	Port    int
	// LoopbackEndpoint is the "ip:port" of the socket: on this host, or where the network is not loopback, the address itself.
	LoopbackEndpoint string
}

// Endpoints are those of a listener: the load balancer's own address first, each with its ports in order.
func (f *Fabric) Endpoints(l cloud.ListenerID) []Endpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	endpoints := []Endpoint{}
	front, ok := f.frontends[l]
	if !ok {
		return endpoints
	}
	for p, s := range front.sockets {
		endpoints = append(endpoints, Endpoint{p.vip.Address, p.port, s.addr.String()})
	}
	rank := map[string]int{}
	for i, v := range front.vips {
		rank[v.Address] = i
	}
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		return cmp.Or(rank[a.Address]-rank[b.Address], a.Port-b.Port)
	})
	return endpoints
}

// Endpoint is the "ip:port" on which a listener accepts connections to the load balancer's own address, or "".
func (f *Fabric) Endpoint(l cloud.ListenerID) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if front, ok := f.frontends[l]; ok && len(front.vips) > 0 {
		if s, ok := front.sockets[spot{front.vips[0], l.Port}]; ok {
			return s.addr.String()
		}
	}
	return ""
}

// frontend is the client's side of one listener: its sockets (with Options.Listen), its clients and, for HTTP and HTTPS,
// its server.
type frontend struct {
	key cloud.ListenerID
	web *web // nil for what is no HTTP
	// vips and sockets are guarded by the fabric's mu, and changed only under its syncing.
	vips    []VIP
	sockets map[spot]socket
	// unwatch ends the health checks.
	unwatch func()

	mu      sync.Mutex
	clients map[net.Conn]VIP // guarded by mu; nil once closed
}

// spot is where a listener has a socket.
type spot struct {
	vip  VIP
	port int
}

type socket struct {
	addr net.Addr
	stop func() error
}

// client is a connection from a client, with how it came.
type client struct {
	net.Conn
	arrival
}

// RemoteAddr is the client's address in the cloud.
func (c *client) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.source) }

// CloseWrite ends the sending side.
func (c *client) CloseWrite() error { return closeWrite(c.Conn) }

// frontend returns the client's side of a listener, for connections from within this process.
func (f *Fabric) frontend(ctx context.Context, key cloud.ListenerID) (*frontend, error) {
	if _, ok := f.read(key); !ok || ctx.Err() != nil {
		return nil, fmt.Errorf("listener %s of %s: %w", key, key.LoadBalancerID, errors.Join(ErrNoBackend, ctx.Err()))
	}
	if front := f.find(key); front != nil {
		return front, nil
	}
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if front := f.find(key); front != nil {
		return front, nil
	}
	if f.ctx.Err() != nil {
		return nil, net.ErrClosed
	}
	front := f.open(key)
	f.put(key, front)
	return front, nil
}

// open begins the client's side of a listener. The caller holds f.syncing.
func (f *Fabric) open(key cloud.ListenerID) *frontend {
	front := &frontend{key: key, sockets: map[spot]socket{}, clients: map[net.Conn]VIP{}, unwatch: func() {}}
	if isWeb(key.Protocol) {
		front.web = f.newWeb(key)
	}
	if f.listen {
		watched, stop := context.WithCancel(f.ctx)
		front.unwatch = stop
		f.wait.Go(func() { f.watch(watched, key) })
	}
	return front
}

// extend opens sockets on the addresses that came, and closes those on the ones that went. What is connected through an elastic address
// goes on without it; what came through a zone that is gone ends with it. The caller holds f.syncing.
func (f *Fabric) extend(s *frontend, x extent) {
	f.mu.Lock()
	s.vips = x.vips
	f.mu.Unlock()
	for p := range s.sockets {
		if slices.Contains(x.vips, p.vip) {
			continue
		}
		// The address is somebody else's now, whatever its socket says.
		_ = s.sockets[p].stop()
		f.putSocket(s, p, socket{})
		if p.vip.Zone != "" && f.holds("network.nlb-removed-zone") {
			s.cut(p.vip)
		}
	}
	for _, vip := range x.vips {
		for port := x.first; port <= min(x.last, x.first+portsWithSockets-1); port++ {
			p := spot{vip, port}
			if _, open := s.sockets[p]; open {
				continue
			}
			if opened, err := f.bind(s, p); err == nil {
				f.putSocket(s, p, opened)
			}
		}
	}
}

// putSocket notes a frontend's socket, or with the zero value that there is none. The caller holds f.syncing.
func (f *Fabric) putSocket(s *frontend, p spot, opened socket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if opened.stop == nil {
		delete(s.sockets, p)
		return
	}
	s.sockets[p] = opened
}

// bind opens a socket of a listener.
func (f *Fabric) bind(front *frontend, p spot) (socket, error) {
	a := arrival{listener: front.key, vip: p.vip, port: p.port}
	if front.key.Protocol == udp {
		opened, err := f.network.ListenPacket(f.ctx, p.vip, p.port)
		if err != nil {
			return socket{}, err
		}
		relay := newRelay(f, a, opened)
		f.wait.Go(relay.run)
		return socket{opened.LocalAddr(), relay.close}, nil
	}
	opened, err := f.network.Listen(f.ctx, p.vip, p.port)
	if err != nil {
		return socket{}, err
	}
	f.wait.Go(func() { f.accept(front, opened, a) })
	return socket{opened.Addr(), opened.Close}, nil
}

func (f *Fabric) accept(front *frontend, socket net.Listener, a arrival) {
	for {
		raw, err := socket.Accept()
		if err != nil {
			return
		}
		a.source = f.network.Source(raw.RemoteAddr())
		c := &client{Conn: raw, arrival: a}
		if isWeb(front.key.Protocol) {
			if !front.serveWeb(c) {
				reset(raw)
			}
			continue
		}
		if !f.serve(front, c) {
			_ = raw.Close()
			return
		}
	}
}

// serve carries a connection of a client, unless the listener is gone.
func (f *Fabric) serve(front *frontend, c *client) bool {
	if !front.add(c) {
		return false
	}
	f.wait.Go(func() {
		defer front.remove(c)
		f.carry(c)
	})
	return true
}

// reset ends a connection the hard way: a client that the listener cannot serve sees a reset, not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (s *frontend) add(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		return false
	}
	s.clients[c] = c.vip
	return true
}

func (s *frontend) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// cut ends the connections that came through a VIP.
func (s *frontend) cut(vip VIP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, came := range s.clients {
		if came == vip {
			_ = c.Close()
		}
	}
}

// close ends the sockets and their clients' connections.
func (s *frontend) close() error {
	s.unwatch()
	var err error
	for _, opened := range s.sockets {
		err = errors.Join(err, opened.stop())
	}
	if s.web != nil {
		err = errors.Join(err, s.web.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		_ = c.Close()
	}
	s.clients = nil
	return err
}
