package lightnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// headerTimeout frees connections whose client never sends a request.
const headerTimeout = 10 * time.Second

// visitor says what a connection has reached: a pod, or the health check port of a Service.
type visitor struct {
	pod, node string
	health    *serviceHealth
}

// serviceHealth is kube-proxy's answer on a Service's health check node port.
type serviceHealth struct {
	Service        serviceName `json:"service"`
	LocalEndpoints int         `json:"localEndpoints"`
}

type serviceName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// podServer is the one HTTP server behind all pods. A pod has no socket: a connection to it is a pipe handed to this server.
type podServer struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	http   *http.Server
	done   chan error
}

func newPodServer() *podServer {
	s := &podServer{conns: make(chan net.Conn), closed: make(chan struct{}), done: make(chan error, 1)}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(answer),
		ReadHeaderTimeout: headerTimeout,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, visitorKey{}, conn.(*pipeConn).visitor) //nolint:forcetypeassert // its listener accepts nothing else
		},
	}
	go func() { s.done <- s.http.Serve(s) }()
	return s
}

type visitorKey struct{}

// answer writes the pod's name in the body and its node in the header Node, or a Service's health.
func answer(w http.ResponseWriter, r *http.Request) {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	if v.health == nil {
		w.Header().Set("Node", v.node)
		fmt.Fprintln(w, v.pod)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if v.health.LocalEndpoints == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// A client that left needs no answer.
	_ = json.NewEncoder(w).Encode(v.health)
}

// open makes a connection to v at address local, which ends with life.
func (s *podServer) open(ctx, life context.Context, v visitor, local netip.AddrPort) (net.Conn, error) {
	if life.Err() != nil { // the select below would pick at random
		return nil, dialError("tcp", local.String(), syscall.ECONNREFUSED)
	}
	here, there := net.Pipe()
	addr := namedAddr{"tcp", local.String()}
	server := &pipeConn{Conn: there, local: addr, remote: namedAddr{"tcp", "0.0.0.0:0"}, visitor: v}
	client := &pipeConn{Conn: here, local: namedAddr{"tcp", "0.0.0.0:0"}, remote: addr}
	server.release = context.AfterFunc(life, func() { _ = there.Close() })
	var err error
	select {
	case s.conns <- server:
		return client, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-life.Done():
		err = syscall.ECONNREFUSED
	case <-s.closed:
		err = syscall.EHOSTUNREACH
	}
	return nil, errors.Join(dialError("tcp", local.String(), err), server.Close(), here.Close())
}

// Accept, Close and Addr make podServer the net.Listener of its HTTP server.
func (s *podServer) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *podServer) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *podServer) Addr() net.Addr { return namedAddr{"tcp", "pods"} }

func (s *podServer) close() error {
	err := s.http.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// pipeConn is one end of a pipe that knows the addresses it stands for.
type pipeConn struct {
	net.Conn
	local, remote namedAddr
	visitor       visitor
	release       func() bool // unhooks the server's end from the life of its pod; nil on the client's end
}

func (c *pipeConn) LocalAddr() net.Addr  { return c.local }
func (c *pipeConn) RemoteAddr() net.Addr { return c.remote }

func (c *pipeConn) Close() error {
	if c.release != nil {
		c.release()
	}
	return c.Conn.Close()
}

type namedAddr struct{ network, addr string }

func (a namedAddr) Network() string { return a.network }
func (a namedAddr) String() string  { return a.addr }
