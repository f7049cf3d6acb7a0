package healthport

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"time"
)

// maxConnections is how many connections one address holds at a time, those of probes, of scrapers, and of whoever else connects. Probes and
// scrapers need a handful. The port is on the network of the node, where no NetworkPolicy protects it.
const maxConnections = 256

// acceptPause is the pause after a failure to accept, for example because the process has no file descriptor left. Without it, the loop
// occupies a core for as long as the failure lasts.
const acceptPause = 50 * time.Millisecond

// bounded is a listener that holds a limited number of connections. One more closes the oldest: a peer that opens connections and keeps them
// cannot keep a probe out, which is served long before it is the oldest.
type bounded struct {
	net.Listener
	most int

	mu   sync.Mutex
	open *list.List // of net.Conn, oldest first
}

func newBounded(listener net.Listener, most int) *bounded {
	return &bounded{Listener: listener, most: most, open: list.New()}
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

// hold adds a connection, in place of the oldest if there are too many.
func (b *bounded) hold(conn net.Conn) net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := &heldConn{Conn: conn, of: b}
	held.place = b.open.PushBack(conn)
	if b.open.Len() > b.most {
		oldest := b.open.Front()
		b.open.Remove(oldest)
		_ = oldest.Value.(net.Conn).Close() //nolint:forcetypeassert // the list holds nothing else
	}
	return held
}

// heldConn leaves the list of its listener when it is closed.
type heldConn struct {
	net.Conn
	of    *bounded
	place *list.Element
}

// Close implements [net.Conn].
func (c *heldConn) Close() error {
	c.of.mu.Lock()
	c.of.open.Remove(c.place)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
