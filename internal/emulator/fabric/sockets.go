package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// socketKey names a listener of a load balancer.
type socketKey struct {
	lb string
	cloud.ListenerKey
}

// String is protocol and port.
func (k socketKey) String() string { return k.Protocol + "/" + strconv.Itoa(k.Port) }

// dialTimeout bounds how long a client of a listener waits for a backend server: a machine that swallows packets must not hold
// the client for ever.
const dialTimeout = 5 * time.Second

// Endpoint is the "ip:port" on which a listener accepts connections on this host, or "".
func (f *Fabric) Endpoint(loadBalancerID string, key cloud.ListenerKey) string {
	if s := f.find(socketKey{loadBalancerID, key}); s != nil && s.addr != nil {
		return s.addr.String()
	}
	return ""
}

// ElasticEndpoint is the "ip:port" of this host on which a listener accepts connections to an elastic address.
type ElasticEndpoint struct{ Address, LoopbackEndpoint string }

// ElasticEndpoints are those of a listener, by address.
func (f *Fabric) ElasticEndpoints(loadBalancerID string, key cloud.ListenerKey) []ElasticEndpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	endpoints := []ElasticEndpoint{}
	if front, ok := f.frontends[socketKey{loadBalancerID, key}]; ok {
		for vip, socket := range front.elastic {
			endpoints = append(endpoints, ElasticEndpoint{vip.Address, socket.addr.String()})
		}
	}
	slices.SortFunc(endpoints, func(a, b ElasticEndpoint) int { return strings.Compare(a.Address, b.Address) })
	return endpoints
}

// frontend is the client's side of one listener: its socket (with Options.Listen), its clients and, for HTTP and HTTPS,
// its server.
type frontend struct {
	key  socketKey
	vip  VIP      // the load balancer's own address
	addr net.Addr // nil without a socket
	web  *web     // nil for tcp and udp
	stop func() error
	// elastic are the sockets on elastic addresses that are bound to the load balancer; guarded by the fabric's mu, and changed only
	// under its syncing.
	elastic map[VIP]elasticSocket
	// unwatch ends the health checks.
	unwatch func()

	mu      sync.Mutex
	clients map[net.Conn]struct{} // guarded by mu; nil once closed
}

// elasticSocket is the socket of a listener on an elastic address.
type elasticSocket struct {
	addr net.Addr
	stop func() error
}

// client is a connection from a client, with the cloud's address of where it comes from.
type client struct {
	net.Conn
	source netip.AddrPort
}

// RemoteAddr is the client's address in the cloud.
func (c *client) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.source) }

// CloseWrite ends the sending side.
func (c *client) CloseWrite() error { return closeWrite(c.Conn) }

// frontend returns the client's side of a listener, for connections from within this process.
func (f *Fabric) frontend(ctx context.Context, key socketKey) (*frontend, error) {
	s, ok := f.read(key)
	if !ok || ctx.Err() != nil {
		return nil, fmt.Errorf("listener %s of %s: %w", key, key.lb, errors.Join(ErrNoBackend, ctx.Err()))
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
	front, err := f.open(key, s.vips[0])
	if err == nil {
		f.put(key, front)
	}
	return front, err
}

// readListener reads a listener that carries traffic.
func (f *Fabric) read(key socketKey) (s settings, ok bool) {
	f.store.View(func() {
		lb, known := f.store.LoadBalancers.Get(key.lb)
		if !known {
			return
		}
		if l, known := lb.Listeners[key.ListenerKey]; known && carries(lb, l, time.Now()) {
			s, ok = f.settings(lb, l), true
		}
	})
	return s, ok
}

// open begins the client's side of a listener. The caller holds f.syncing.
func (f *Fabric) open(key socketKey, vip VIP) (*frontend, error) {
	front := &frontend{
		key: key, vip: vip, elastic: map[VIP]elasticSocket{}, clients: map[net.Conn]struct{}{},
		stop: func() error { return nil }, unwatch: func() {},
	}
	if isWeb(key.Protocol) {
		front.web = f.newWeb(key)
	}
	if !f.listen {
		return front, nil
	}
	// The socket comes last: connections arrive as soon as it is there.
	addr, closeSocket, err := f.bind(front, vip)
	if err != nil {
		return nil, fmt.Errorf("open listener %s of %s: %w", key, key.lb, errors.Join(err, front.close()))
	}
	front.addr, front.stop = addr, closeSocket
	watched, stop := context.WithCancel(f.ctx)
	front.unwatch = stop
	f.wait.Go(func() { f.watch(watched, key) })
	return front, nil
}

// follow opens sockets on the elastic addresses that came, and closes those on the ones that went; what is connected
// already goes on. The caller holds f.syncing.
func (s *frontend) follow(f *Fabric, elastic []VIP) {
	for vip, socket := range s.elastic {
		if !slices.Contains(elastic, vip) {
			f.putElastic(s, vip, elasticSocket{})
			// The address is somebody else's now, whatever its socket says.
			_ = socket.stop()
		}
	}
	for _, vip := range elastic {
		if _, open := s.elastic[vip]; open {
			continue
		}
		if addr, stop, err := f.bind(s, vip); err == nil {
			f.putElastic(s, vip, elasticSocket{addr, stop})
		}
	}
}

// putElastic notes a frontend's socket on an elastic address, or with the zero value that there is none. The caller holds f.syncing.
func (f *Fabric) putElastic(s *frontend, vip VIP, socket elasticSocket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if socket.stop == nil {
		delete(s.elastic, vip)
		return
	}
	s.elastic[vip] = socket
}

// bind opens a socket of a listener.
func (f *Fabric) bind(front *frontend, vip VIP) (net.Addr, func() error, error) {
	if front.key.Protocol == "udp" {
		socket, err := f.network.ListenPacket(f.ctx, vip, front.key.Port)
		if err != nil {
			return nil, nil, err
		}
		relay := newRelay(f, front.key, socket)
		f.wait.Go(relay.run)
		return socket.LocalAddr(), relay.close, nil
	}
	socket, err := f.network.Listen(f.ctx, vip, front.key.Port)
	if err != nil {
		return nil, nil, err
	}
	f.wait.Go(func() { f.accept(front, socket) })
	return socket.Addr(), socket.Close, nil
}

func (f *Fabric) accept(front *frontend, socket net.Listener) {
	for {
		raw, err := socket.Accept()
		if err != nil {
			return
		}
		c := &client{Conn: raw, source: f.network.Source(raw.RemoteAddr())}
		if isWeb(front.key.Protocol) {
			if !front.serveWeb(c) {
				reset(raw)
			}
			continue
		}
		if !front.add(c) {
			_ = raw.Close()
			return
		}
		f.wait.Go(func() {
			defer front.remove(c)
			f.carry(front.key, c)
		})
	}
}

// reset ends a connection the hard way: a client that the listener cannot serve sees a reset, not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (s *frontend) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		return false
	}
	s.clients[c] = struct{}{}
	return true
}

func (s *frontend) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// close ends the socket and its clients' connections.
func (s *frontend) close() error {
	s.unwatch()
	err := s.stop()
	for _, socket := range s.elastic {
		err = errors.Join(err, socket.stop())
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
