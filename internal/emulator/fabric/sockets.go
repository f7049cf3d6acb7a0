package fabric

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
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

// dialTimeout bounds how long a client of a listener waits for a member: a machine that swallows packets must not hold
// the client for ever.
const dialTimeout = 5 * time.Second

// Sync brings sockets and connections in line with the store: sockets for the listeners that carry traffic, none for
// others, and no connection to a machine that does not run.
func (f *Fabric) Sync() {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.dropDead()
	if !f.listen {
		return
	}
	wanted := f.wanted()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	for key, s := range f.sockets {
		if wanted[key] != s.vip {
			delete(f.sockets, key)
			f.balancers.forget(key)
			// The listener is gone whatever its socket says.
			_ = s.close()
		}
	}
	for key, ip := range wanted {
		if f.sockets[key] != nil {
			continue
		}
		if s, err := f.open(key, ip); err == nil {
			f.sockets[key] = s
		}
	}
}

// dropDead breaks the connections to machines that were released or stopped.
func (f *Fabric) dropDead() {
	connected := f.conns.machines()
	if len(connected) == 0 {
		return
	}
	dead := map[string]bool{}
	f.store.View(func() {
		for id := range connected {
			if _, reason := f.machine(id, time.Now()); reason != "" {
				dead[id] = true
			}
		}
	})
	if len(dead) > 0 {
		f.conns.closeWhere(func(id string) bool { return dead[id] })
	}
}

// wanted are the listeners that should have a socket, with their VIPs.
func (f *Fabric) wanted() map[socketKey]string {
	wanted := map[socketKey]string{}
	f.store.View(func() {
		now := time.Now()
		for lb := range f.store.LoadBalancers.All() {
			for key, l := range lb.Listeners {
				if key.Protocol == "tcp" && carries(lb, l, now) {
					wanted[socketKey{lb.ID, key}] = lb.Address
				}
			}
		}
	})
	return wanted
}

// Endpoint is the "ip:port" on which a listener accepts connections on this host, or "".
func (f *Fabric) Endpoint(loadBalancerID string, key cloud.ListenerKey) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.sockets[socketKey{loadBalancerID, key}]; ok {
		return s.Addr().String()
	}
	return ""
}

// socket is one listening socket with its clients.
type socket struct {
	net.Listener
	vip string

	mu      sync.Mutex
	clients map[net.Conn]struct{} // guarded by mu; nil once closed
}

// open binds the VIP's loopback address with the listener's port. Where that is not possible it takes another port (the
// port is privileged or in use), and where the host has no such address, 127.0.0.1.
func (f *Fabric) open(key socketKey, ip string) (*socket, error) {
	host := f.addresses.loopback(ip)
	var c net.ListenConfig
	l, err := c.Listen(f.ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(key.Port)))
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EADDRINUSE) {
		l, err = c.Listen(f.ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		l, err = c.Listen(f.ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	s := &socket{Listener: l, vip: ip, clients: map[net.Conn]struct{}{}}
	f.wait.Go(func() { f.accept(key, s) })
	return s, nil
}

func (f *Fabric) accept(key socketKey, s *socket) {
	for {
		client, err := s.Accept()
		if err != nil {
			return
		}
		if !s.add(client) {
			_ = client.Close()
			return
		}
		f.wait.Go(func() {
			defer s.remove(client)
			f.carry(key, client)
		})
	}
}

// carry connects a client with a member until both sides are done.
func (f *Fabric) carry(key socketKey, client net.Conn) {
	defer client.Close() //nolint:errcheck // the connection is over either way
	ctx, cancel := context.WithTimeout(f.ctx, dialTimeout)
	defer cancel()
	backend, err := f.balance(ctx, key)
	if err != nil {
		// A client of a listener without reachable members sees a reset, not an orderly end.
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	defer backend.Close() //nolint:errcheck // the connection is over either way
	var both sync.WaitGroup
	both.Go(func() { pipe(backend, client) })
	both.Go(func() { pipe(client, backend) })
	both.Wait()
}

// pipe copies one direction and passes its end on.
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err != nil {
		// One direction broke: nothing sensible can follow in the other.
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = closeWrite(to)
}

func (s *socket) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		return false
	}
	s.clients[c] = struct{}{}
	return true
}

func (s *socket) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// close ends the socket and its clients' connections.
func (s *socket) close() error {
	err := s.Listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		_ = c.Close()
	}
	s.clients = nil
	return err
}
