package healthport

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Probes and scrapers need a handful of connections. The port is on the network of the node, where no NetworkPolicy protects it.
const (
	// maxConnections is how many connections one address holds at a time, those of probes, of scrapers, and of whoever else connects.
	maxConnections = 256
	// maxPerSource is how many of them one peer holds: whoever floods the port from one machine or pod closes its own, and not a probe's.
	maxPerSource = 48
)

// acceptPause is the pause after a failure to accept, for example because the process has no file descriptor left. Without it, the loop
// occupies a core for as long as the failure lasts.
const acceptPause = 50 * time.Millisecond

// bounded is a listener that holds a limited number of connections, of each peer and in all. One more closes another one of its peer, or of
// the peer that has most: a connection on which nothing was asked rather than one that is being answered, and the oldest of them.
type bounded struct {
	net.Listener
	most, perSource int

	mu   sync.Mutex  // guards open, and asked of its connections
	open []*heldConn // oldest first
}

func newBounded(listener net.Listener, most, perSource int) *bounded {
	return &bounded{Listener: listener, most: most, perSource: perSource}
}

// Accept implements [net.Listener]. Its only error is [net.ErrClosed].
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, net.ErrClosed
		}
		if err == nil {
			return b.hold(conn), nil
		}
		time.Sleep(acceptPause) //nolint:forbidigo // nobody waits for this, and closing the listener ends it
	}
}

// hold adds a connection, in place of another one if there are too many.
func (b *bounded) hold(conn net.Conn) net.Conn {
	held := &heldConn{Conn: conn, of: b, source: sourceOf(conn)}
	b.mu.Lock()
	defer b.mu.Unlock()
	count := map[string]int{}
	for _, other := range b.open {
		count[other.source]++
	}
	most := held.source
	for source, n := range count {
		if n > count[most] {
			most = source
		}
	}
	switch {
	case count[held.source] >= b.perSource:
		b.drop(held.source)
	case len(b.open) >= b.most:
		b.drop(most)
	}
	b.open = append(b.open, held)
	return held
}

// drop closes the oldest connection of the source on which nothing was asked, else the oldest. It is called with the lock held.
func (b *bounded) drop(source string) {
	at := slices.IndexFunc(b.open, func(c *heldConn) bool { return c.source == source && !c.asked })
	if at < 0 {
		at = slices.IndexFunc(b.open, func(c *heldConn) bool { return c.source == source })
	}
	if at >= 0 {
		_ = b.open[at].Conn.Close()
		b.open = slices.Delete(b.open, at, at+1)
	}
}

// sourceOf is the peer's address without its port.
func sourceOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// heldConn leaves its listener when it is closed.
type heldConn struct {
	net.Conn
	of     *bounded
	source string
	asked  bool
}

// Read implements [net.Conn].
func (c *heldConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 {
		c.of.mu.Lock()
		c.asked = true
		c.of.mu.Unlock()
	}
	return n, err
}

// Close implements [net.Conn].
func (c *heldConn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(other *heldConn) bool { return other == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
