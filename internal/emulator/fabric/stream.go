package fabric

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// carry connects a client of a TCP listener with a backend server until both sides are done.
func (f *Fabric) carry(key socketKey, c *client) {
	defer c.Close() //nolint:errcheck // the connection is over either way
	ctx, cancel := context.WithTimeout(f.ctx, dialTimeout)
	defer cancel()
	member, s, err := f.balance(ctx, key, c.source)
	if err != nil {
		reset(c.Conn)
		return
	}
	defer member.Close() //nolint:errcheck // the connection is over either way
	if err := introduce(ctx, member, s, c.source); err != nil {
		reset(c.Conn)
		return
	}
	join(c, member, s.established)
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
