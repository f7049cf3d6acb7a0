package fabric

import (
	"net"
	"sync"
)

// conns are the open connections to machines. The zero value is ready.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{} // guarded by mu
}

// conn is a connection to one machine.
type conn struct {
	net.Conn
	instanceID string
	owner      *conns
}

func (s *conns) add(instanceID string, c net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	tracked := &conn{c, instanceID, s}
	s.open[tracked] = struct{}{}
	return tracked
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends the sending side, where the connection beneath can.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite passes an end of stream on. A connection that cannot end one side is closed: left open, its reader would wait
// for ever for an end that never comes.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// machines returns the instances that have connections.
func (s *conns) machines() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make(map[string]bool, len(s.open))
	for c := range s.open {
		ids[c.instanceID] = true
	}
	return ids
}

// closeWhere closes the connections to the machines that gone names.
func (s *conns) closeWhere(gone func(instanceID string) bool) {
	s.mu.Lock()
	var dead []*conn
	for c := range s.open {
		if gone(c.instanceID) {
			dead = append(dead, c)
		}
	}
	s.mu.Unlock()
	for _, c := range dead {
		// Breaking the connection is the purpose; how it takes it does not matter.
		_ = c.Close()
	}
}

func (s *conns) closeAll() { s.closeWhere(func(string) bool { return true }) }
