package fabric

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxDatagram is the largest payload of UDP over IPv4, rounded up.
	maxDatagram = 64 << 10
	// sessionIdle is how long a UDP session without datagrams lasts where the listener does not say (assumed), flippedIdle where that is
	// flipped.
	sessionIdle = 90 * time.Second
	flippedIdle = 10 * sessionIdle
)

// relay carries the datagrams of one UDP listener: each source address and port is a session with one backend server.
type relay struct {
	fabric  *Fabric
	arrival arrival // but for the source
	socket  net.PacketConn

	mu       sync.Mutex
	sessions map[string]*session // by the source's address on this host; guarded by mu
}

// session is one client's way to its backend server.
type session struct {
	backend net.Conn
	quiet   *time.Timer
	idle    time.Duration
}

func newRelay(f *Fabric, a arrival, socket net.PacketConn) *relay {
	return &relay{fabric: f, arrival: a, socket: socket, sessions: map[string]*session{}}
}

func (r *relay) run() {
	defer r.endAll()
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := r.socket.ReadFrom(buffer)
		if err != nil {
			return
		}
		r.forward(buffer[:n], from)
	}
}

// forward sends a datagram to the source's backend server. What cannot be delivered is dropped, as a network does.
func (r *relay) forward(datagram []byte, from net.Addr) {
	r.mu.Lock()
	s := r.sessions[from.String()]
	r.mu.Unlock()
	if s == nil {
		var header []byte
		if s, header = r.begin(from, r.fabric.network.Source(from)); s == nil {
			return
		}
		// The header goes with the first datagram of a session (assumed: no source says how UDP carries it).
		datagram = append(header, datagram...)
	}
	s.quiet.Reset(s.idle)
	_, _ = s.backend.Write(datagram)
}

// begin opens a session, or returns nil when the listener has nobody for the source.
func (r *relay) begin(from net.Addr, source netip.AddrPort) (*session, []byte) {
	ctx, cancel := context.WithTimeout(r.fabric.ctx, dialTimeout)
	defer cancel()
	a := r.arrival
	a.source = source
	backend, s, err := r.fabric.balance(ctx, a)
	if err != nil {
		return nil, nil
	}
	var header []byte
	if s.proxy.on {
		if header, err = proxyHeader(s, a); err != nil {
			_ = backend.Close()
			return nil, nil
		}
	}
	idle := s.idle
	if idle == 0 {
		idle = sessionIdle
		if !r.fabric.holds("network.udp-sessions") {
			idle = flippedIdle
		}
	}
	begun := &session{backend: backend, idle: idle, quiet: time.AfterFunc(idle, func() { _ = backend.Close() })}
	r.mu.Lock()
	r.sessions[from.String()] = begun
	r.mu.Unlock()
	r.fabric.wait.Go(func() { r.answer(begun, from) })
	return begun, header
}

// answer sends what the backend server says back to the client until the session ends.
func (r *relay) answer(s *session, to net.Addr) {
	defer func() {
		s.quiet.Stop()
		_ = s.backend.Close()
		r.mu.Lock()
		delete(r.sessions, to.String())
		r.mu.Unlock()
	}()
	buffer := make([]byte, maxDatagram)
	for {
		n, err := s.backend.Read(buffer)
		if err != nil {
			return
		}
		s.quiet.Reset(s.idle)
		if _, err := r.socket.WriteTo(buffer[:n], to); err != nil {
			return
		}
	}
}

func (r *relay) close() error { return r.socket.Close() }

func (r *relay) endAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		_ = s.backend.Close()
	}
}
