package healthport

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// sniffTimeout bounds the wait for a connection's first byte. Without it a client that connects and says nothing would
// hold a goroutine for ever.
const sniffTimeout = 10 * time.Second

// tlsHandshakeRecord is the first byte of every TLS connection (RFC 8446, section 5.1); no HTTP request begins with it.
const tlsHandshakeRecord = 0x16

// splitter accepts from one listener and hands each connection on by its first byte.
type splitter struct {
	*bounded
	tls, plain *branch
}

func newSplitter(listener *bounded) *splitter {
	return &splitter{bounded: listener, tls: newBranch(listener), plain: newBranch(listener)}
}

// run hands connections on until the listener is closed.
func (s *splitter) run() {
	defer s.tls.Close()
	defer s.plain.Close()
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		go s.route(conn)
	}
}

func (s *splitter) route(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(sniffTimeout))
	reader := bufio.NewReader(conn)
	first, err := reader.Peek(1)
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	target := s.plain
	if first[0] == tlsHandshakeRecord {
		target = s.tls
	}
	target.deliver(&peekedConn{Conn: conn, reader: reader})
}

// branch is the listener of one kind of connection.
type branch struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newBranch(of net.Listener) *branch {
	return &branch{addr: of.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (b *branch) deliver(conn net.Conn) {
	select {
	case b.conns <- conn:
	case <-b.closed:
		_ = conn.Close()
	}
}

// Accept implements [net.Listener].
func (b *branch) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (b *branch) Close() error {
	b.close.Do(func() { close(b.closed) })
	return nil
}

// Addr implements [net.Listener].
func (b *branch) Addr() net.Addr { return b.addr }

// peekedConn reads what was peeked before it reads on.
type peekedConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements [net.Conn].
func (c *peekedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }
