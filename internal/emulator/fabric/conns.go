package fabric

import (
	"net"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// conns are the open connections to machines. The zero value is ready.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{} // guarded by mu
}

// conn is a connection to one machine, and to a backend server of a listener when listener is set.
type conn struct {
	net.Conn
	instanceID string
	listener   cloud.ListenerID
	backend    cloud.BackendID
	// release gives the backend server back; nil for a connection without listener. It runs once.
	release func()

	owner *conns
	once  sync.Once
	// drain closes the connection when its time is up; guarded by owner.mu, nil while its backend server is in the group.
	drain *time.Timer
}

func (s *conns) add(c *conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	c.owner = s
	s.open[c] = struct{}{}
	return c
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	if c.drain != nil {
		c.drain.Stop()
	}
	c.owner.mu.Unlock()
	if c.release != nil {
		c.once.Do(c.release)
	}
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

// listeners returns the listeners that have connections.
func (s *conns) listeners() map[cloud.ListenerID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[cloud.ListenerID]bool{}
	for c := range s.open {
		if c.listener != (cloud.ListenerID{}) {
			keys[c.listener] = true
		}
	}
	return keys
}

// backends returns the backend servers to which a listener has connections.
func (s *conns) backends(listener cloud.ListenerID) map[cloud.BackendID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[cloud.BackendID]bool{}
	for c := range s.open {
		if c.listener == listener {
			ids[c.backend] = true
		}
	}
	return ids
}

// closeWhere closes the connections to the machines that gone names.
func (s *conns) closeWhere(gone func(instanceID string) bool) {
	s.closeAll(s.where(func(c *conn) bool { return gone(c.instanceID) }))
}

func (s *conns) where(wanted func(*conn) bool) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*conn
	for c := range s.open {
		if wanted(c) {
			found = append(found, c)
		}
	}
	return found
}

func (s *conns) closeAll(dead []*conn) {
	for _, c := range dead {
		// Breaking the connection is the purpose; how it takes it does not matter.
		_ = c.Close()
	}
}

// leave lets the connections of a listener to backend servers that are not serving end: at once without a time, else after it. A
// backend that serves again before that keeps its connections.
func (s *conns) leave(listener cloud.ListenerID, serving map[cloud.BackendID]bool, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		switch {
		case c.listener != listener:
		case serving[c.backend]:
			if c.drain != nil {
				c.drain.Stop()
				c.drain = nil
			}
		case c.drain == nil:
			c.drain = time.AfterFunc(after, func() { _ = c.Close() })
		}
	}
}
