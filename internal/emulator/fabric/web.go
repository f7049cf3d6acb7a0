package fabric

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func isWeb(protocol string) bool { return protocol == "http" || protocol == "https" }

// headerTimeout bounds how long a client may take to send the head of a request.
const headerTimeout = 30 * time.Second

// web is the server of one HTTP or HTTPS listener.
type web struct {
	fabric    *Fabric
	key       cloud.ListenerID
	server    *http.Server
	transport *http.Transport
	proxy     *httputil.ReverseProxy
	queue     *queue

	mu sync.Mutex
	// idle closes kept-alive connections on which no request is in progress; guarded by mu.
	idle map[net.Conn]*time.Timer
}

// newWeb starts the server of a listener. It gets its connections from serveWeb.
func (f *Fabric) newWeb(key cloud.ListenerID) *web {
	w := &web{fabric: f, key: key, queue: newQueue(), idle: map[net.Conn]*time.Timer{}}
	silent := log.New(io.Discard, "", 0)
	w.transport = &http.Transport{DialContext: w.dial, DisableCompression: true, MaxIdleConnsPerHost: 16}
	w.proxy = &httputil.ReverseProxy{
		Rewrite: w.rewrite, Transport: w, ModifyResponse: modifyResponse, ErrorHandler: w.fail,
		ErrorLog: silent, FlushInterval: -1,
	}
	w.server = &http.Server{Handler: w, ConnState: w.connState, ErrorLog: silent, ReadHeaderTimeout: headerTimeout}
	f.wait.Go(func() {
		// The server ends with its queue; that is the only way in which it does.
		_ = w.server.Serve(w.queue)
	})
	return w
}

// serveWeb hands a client's connection to the listener's server. It reports false when the access control refuses the
// source or the listener has gone.
func (s *frontend) serveWeb(c *client) bool {
	now, ok := s.web.fabric.read(s.key)
	if !ok || !now.admits(c.arrival) {
		return false
	}
	var served net.Conn = c
	if s.key.Protocol == "https" {
		served = tls.Server(c, s.web.fabric.tlsServer(s.key))
	}
	return s.web.queue.put(served)
}

func (w *web) close() error {
	err := errors.Join(w.queue.Close(), w.server.Close())
	w.transport.CloseIdleConnections()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.idle {
		t.Stop()
	}
	return err
}

// connState closes a connection that is idle for the listener's IdleTimeout. The server's own timeout is fixed when it
// starts and would not follow a change of the listener.
func (w *web) connState(c net.Conn, state http.ConnState) {
	timeout := time.Duration(0)
	if state == http.StateIdle {
		if s, ok := w.fabric.read(w.key); ok {
			timeout = s.web.idle
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.idle[c]; t != nil {
		t.Stop()
		delete(w.idle, c)
	}
	if timeout > 0 {
		w.idle[c] = time.AfterFunc(timeout, func() { _ = c.Close() })
	}
}

// exchange is one request on its way to a backend server and back.
type exchange struct {
	settings settings
	backends []backend
	source   netip.AddrPort
	// chosen is the backend server that took the request; tried means that at least one was asked.
	chosen *backend
	tried  bool
	// waiting cancels the request when no answer has begun in time.
	waiting *time.Timer
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// errRequestTimeout is why a request is canceled that its backend server did not answer in time.
var errRequestTimeout = errors.New("the backend server did not answer within the listener's RequestTimeout")

// ServeHTTP carries one request.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s, backends, ok := w.fabric.readListener(w.key)
	if !ok {
		// The listener has been stopped: its connections break.
		panic(http.ErrAbortHandler)
	}
	if s.web.forwardPort != 0 {
		redirect(rw, r, s.web)
		return
	}
	source, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x := &exchange{settings: s, backends: backends, source: source}
	x.waiting = time.AfterFunc(max(s.web.request, time.Second), func() { cancel(errRequestTimeout) })
	defer x.waiting.Stop()
	defer func() {
		if x.chosen != nil {
			w.fabric.balancers.of(x.settings.turnsOf(VIP{})).release(*x.chosen)
		}
	}()
	w.proxy.ServeHTTP(rw, r.WithContext(context.WithValue(ctx, exchangeKey{}, x)))
}

// RoundTrip sends a request to the backend server that the cookie or the scheduler names. Only a backend server that could not be
// connected to is passed over: after that the request may have had an effect.
func (w *web) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	x := exchangeOf(r.Context())
	preferred := x.settings.web.sticky.preferred(r, x.backends, time.Now())
	x.settings.web.sticky.hide(r)
	err = w.fabric.attempt(r.Context(), x.settings, x.backends, arrival{listener: w.key, source: x.source}, preferred,
		func(m backend) (bool, error) {
			x.tried = true
			try := r.Clone(context.WithValue(r.Context(), backendKey{}, m))
			try.URL.Host = m.addr
			if r.Body != nil {
				// A failed connect closes the body, which the next backend server still needs.
				try.Body = io.NopCloser(r.Body)
			}
			got, failed := w.transport.RoundTrip(try) //nolint:bodyclose // the proxy closes the body of the answer
			if failed != nil {
				var refused *connectError
				return errors.As(failed, &refused), failed
			}
			answer, x.chosen = got, &m
			return false, nil
		})
	return answer, err
}

type backendKey struct{}

// connectError means that the connection to a backend server failed, as opposed to what came later.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// dial connects to the backend server of a request. The connection is kept for later requests to the backend server.
func (w *web) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m, _ := ctx.Value(backendKey{}).(backend)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := w.fabric.network.Dial(ctx, m.instanceID, "tcp", m.addr, netip.AddrPort{})
	if err != nil {
		return nil, &connectError{err}
	}
	return w.fabric.conns.add(&conn{Conn: c, instanceID: m.instanceID, listener: w.key, backend: m.id}), nil
}

// queue is a listener whose connections come from this process.
type queue struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newQueue() *queue { return &queue{conns: make(chan net.Conn), done: make(chan struct{})} }

func (q *queue) put(c net.Conn) bool {
	select {
	case q.conns <- c:
		return true
	case <-q.done:
		return false
	}
}

// Accept waits for the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close ends the queue.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr names the queue; it has no address.
func (q *queue) Addr() net.Addr { return &net.TCPAddr{} }
