package controlplane

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// Ailment is what is wrong with a control plane; the zero value is nothing.
type Ailment struct {
	// APIServerGone breaks the connections to the API server, and every new one at once.
	APIServerGone bool
	// EtcdFails answers requests to etcd with its own timeout, as one does whose disk hangs. Of the API server that makes one that
	// serves from its caches and answers the rest with errors.
	EtcdFails bool
	// EtcdDelay is how much longer each request to etcd takes.
	EtcdDelay time.Duration
}

// Trouble is what is wrong with a control plane at the moment. The zero value is a healthy one.
type Trouble struct {
	now atomic.Pointer[Ailment] // nil is none

	mu    sync.Mutex // guards conns, and orders a new connection before or after the API server goes
	conns map[net.Conn]struct{}
}

// Set replaces what is wrong.
func (t *Trouble) Set(ailment Ailment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Store(&ailment)
	if !ailment.APIServerGone {
		return
	}
	for conn := range t.conns {
		_ = conn.Close() // its server notices, and closes it again
	}
}

func (t *Trouble) current() Ailment {
	if ailment := t.now.Load(); ailment != nil {
		return *ailment
	}
	return Ailment{}
}

// troubledListener hands over the API server's connections as long as it is there. Those that come while it is gone are closed, which
// programs can hardly distinguish from a refusal; the port itself is kept, or somebody else could take it.
type troubledListener struct {
	net.Listener
	trouble *Trouble
}

func (l *troubledListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.trouble.admit(conn) {
			return &admittedConn{Conn: conn, trouble: l.trouble}, nil
		}
		_ = conn.Close() // nobody reads or writes it
	}
}

func (t *Trouble) admit(conn net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current().APIServerGone {
		return false
	}
	if t.conns == nil {
		t.conns = map[net.Conn]struct{}{}
	}
	t.conns[conn] = struct{}{}
	return true
}

type admittedConn struct {
	net.Conn
	trouble *Trouble
}

func (c *admittedConn) Close() error {
	c.trouble.mu.Lock()
	delete(c.trouble.conns, c.Conn)
	c.trouble.mu.Unlock()
	return c.Conn.Close()
}

// etcdOptions make a server of etcd ail. Watches that run already go on: an etcd that hangs sends nothing new anyway.
func (t *Trouble) etcdOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := t.hinder(ctx); err != nil {
				return nil, err
			}
			return handle(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := t.hinder(stream.Context()); err != nil {
				return err
			}
			return handle(server, stream)
		}),
	}
}

// hinder does to a request to etcd what is to be done to it at the moment.
func (t *Trouble) hinder(ctx context.Context) error {
	ailment := t.current()
	if ailment.EtcdDelay > 0 {
		select {
		case <-time.After(ailment.EtcdDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if ailment.EtcdFails {
		return rpctypes.ErrGRPCTimeout
	}
	return nil
}
