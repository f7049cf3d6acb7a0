package fabric

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// carry connects a client of a TCP or TCPSSL listener with a backend server until both sides are done.
func (f *Fabric) carry(c *client) {
	defer c.Close() //nolint:errcheck // the connection is over either way
	ctx, cancel := context.WithTimeout(f.ctx, dialTimeout)
	defer cancel()
	side, err := f.receive(ctx, c)
	if err != nil {
		f.turnAway(c, err)
		return
	}
	backend, s, err := f.balance(ctx, c.arrival)
	if err != nil {
		f.turnAway(c, err)
		return
	}
	defer backend.Close() //nolint:errcheck // the connection is over either way
	if err := introduce(ctx, backend, s, c.arrival); err != nil {
		reset(c.Conn)
		return
	}
	join(side, backend, s.idle)
}

// turnAway ends the connection of a client whom the listener cannot serve.
func (f *Fabric) turnAway(c *client, err error) {
	if c.listener.ID != "" && errors.Is(err, ErrNotAdmitted) && !f.holds("network.nlb-dropped") {
		_, _ = io.Copy(io.Discard, c) // no answer, until the client gives up
		return
	}
	reset(c.Conn)
}

// receive is the client's side of a connection: what it says once TLS has ended, where the listener ends it.
func (f *Fabric) receive(ctx context.Context, c *client) (net.Conn, error) {
	if c.listener.Protocol != tcpSSL {
		return c, nil
	}
	if s, ok := f.read(c.listener); !ok || !s.admits(c.arrival) {
		return nil, refused(c.arrival)
	}
	secured := tls.Server(c, f.tlsServer(c.listener))
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("handshake with %s: %w", c.source, err)
	}
	return secured, nil
}

// join copies both directions until both have ended, one breaks, or nothing moved for idle (0 = for ever).
func join(a, b net.Conn, idle time.Duration) {
	touch := func() {}
	if idle > 0 {
		// Whoever waits in a copy gets an error when both sides close, and ends.
		quiet := time.AfterFunc(idle, func() {
			_ = a.Close()
			_ = b.Close()
		})
		defer quiet.Stop()
		touch = func() { quiet.Reset(idle) }
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(a, touching{b, touch}) })
	both.Go(func() { pipe(b, touching{a, touch}) })
	both.Wait()
}

// touching reports everything that is read from a connection.
type touching struct {
	net.Conn
	touch func()
}

func (t touching) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.touch()
	return n, err
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
