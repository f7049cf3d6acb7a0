package healthport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/path"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	componentbaseconfig "k8s.io/component-base/config"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The serving certificate's file watcher of k8s.io/apiserver ends with its stop channel, some time later.
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// port is a running pair of stock server and health port.
type port struct {
	address string
	healthy *atomic.Bool
	unready *atomic.Bool
}

func startPort(t *testing.T) port {
	t.Helper()
	stop := make(chan struct{})
	serving := selfSigned(t)
	address := serving.Listener.Addr().String()
	allowHealth, err := path.NewAuthorizer([]string{"/healthz", "/livez", "/readyz"})
	if err != nil {
		t.Fatal(err)
	}
	authz := &apiserver.AuthorizationInfo{Authorizer: allowHealth}
	authn := &apiserver.AuthenticationInfo{Authenticator: anonymous.NewAuthenticator(nil)}
	unready := &atomic.Bool{}
	ready := func() error {
		if unready.Load() {
			return errors.New("a secret reason")
		}
		return nil
	}
	if _, err := Serve(serving, &componentbaseconfig.DebuggingConfiguration{}, authn, authz, ready, stop); err != nil {
		t.Fatal(err)
	}
	healthy := &atomic.Bool{}
	healthy.Store(true)
	stock := http.NewServeMux()
	stock.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			http.Error(w, "controller stuck", http.StatusInternalServerError)
		}
	})
	stopped, _, err := serving.Serve(stock, time.Second, stop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return port{address: address, healthy: healthy, unready: unready}
}

func selfSigned(t *testing.T) *apiserver.SecureServingInfo {
	t.Helper()
	opts := options.NewSecureServingOptions()
	opts.ServerCert.CertDirectory, opts.BindPort = "", 0
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts.Listener = listener
	if err := opts.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	var info *apiserver.SecureServingInfo
	if err := opts.ApplyTo(&info); err != nil {
		t.Fatal(err)
	}
	return info
}

func status(t *testing.T, url string) int {
	t.Helper()
	got := statusOrZero(t, url)
	if got == 0 {
		t.Fatalf("%s: no answer", url)
	}
	return got
}

// statusOrZero returns 0 where there is no answer.
func statusOrZero(t *testing.T, url string) int {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 2 * time.Minute}).Do(request) // a busy machine is no failure
	if err != nil {
		t.Log(err)
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestHealthOverBothProtocols(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	for _, scheme := range []string{"http", "https"} {
		for _, path := range Paths {
			p.healthy.Store(true)
			if got := status(t, scheme+"://"+p.address+path); got != http.StatusOK {
				t.Errorf("%s %s while healthy: status %d, want 200", scheme, path, got)
			}
			p.healthy.Store(false)
			if got := status(t, scheme+"://"+p.address+path); got != http.StatusInternalServerError {
				t.Errorf("%s %s while not healthy: status %d, want 500", scheme, path, got)
			}
		}
	}
}

func TestOnlyHealthIsOpen(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	for _, path := range []string{"/metrics", "/configz", "/"} {
		if got := status(t, "http://"+p.address+path); got != http.StatusNotFound {
			t.Errorf("http %s: status %d, want 404", path, got)
		}
		if got := status(t, "https://"+p.address+path); got != http.StatusForbidden {
			t.Errorf("https %s without identity: status %d, want 403", path, got)
		}
	}
}

func TestSilentConnectionHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	silent, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if got := status(t, "http://"+p.address+"/healthz"); got != http.StatusOK {
		t.Errorf("status %d beside a silent connection, want 200", got)
	}
}

// TestIdleConnectionsTakeNothing: more connections than the port holds, each none with a request, keep no probe out, and the oldest end.
func TestIdleConnectionsTakeNothing(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	var idle []net.Conn
	for range 3 * maxConnections {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	for _, scheme := range []string{"http", "https"} {
		if got := status(t, scheme+"://"+p.address+"/healthz"); got != http.StatusOK {
			t.Errorf("%s: status %d beside %d idle connections, want 200", scheme, got, len(idle))
		}
	}
	// The port closes the oldest at once, and not only after sniffTimeout.
	if err := idle[0].SetReadDeadline(time.Now().Add(sniffTimeout / 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := idle[0].Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the oldest connection is open")
	}
}

// TestReadyIsMoreThanAlive: only /readyz fails for what no restart repairs, and it gives its reason only to who may ask.
func TestReadyIsMoreThanAlive(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	p.unready.Store(true)
	for _, scheme := range []string{"http", "https"} {
		for path, want := range map[string]int{"/healthz": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusInternalServerError} {
			if got := status(t, scheme+"://"+p.address+path); got != want {
				t.Errorf("%s %s while not ready: status %d, want %d", scheme, path, got, want)
			}
		}
	}
	recorder := httptest.NewRecorder()
	checks(http.NotFoundHandler(), func() error { return errors.New("a secret reason") })[readyPath].ServeHTTP(recorder,
		httptest.NewRequest(http.MethodGet, readyPath, nil))
	if body := recorder.Body.String(); strings.Contains(body, "secret") {
		t.Errorf("the answer tells everybody why: %s", body)
	}
}

// failing is a listener that fails as many times before it is closed.
type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left == 0 {
		return nil, net.ErrClosed
	}
	f.left--
	return nil, syscall.EMFILE
}

// TestFailureToAcceptPauses: without file descriptors, the loop does not spin.
func TestFailureToAcceptPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if _, err := newBounded(&failing{left: 20}, maxConnections, maxPerSource).Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v, want that the listener is closed", err)
		}
		if passed := time.Since(start); passed != 20*acceptPause {
			t.Errorf("20 failures took %s, want %s", passed, 20*acceptPause)
		}
	})
}

// TestFloodOfOnePeerLosesNoProbe: one peer that opens connections as fast as it can, with and without a request on them, costs no probe of
// another peer its answer.
func TestFloodOfOnePeerLosesNoProbe(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	var opened atomic.Int64
	for i := range 32 {
		flood.Go(func() {
			dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			for ctx.Err() == nil {
				conn, err := dialer.DialContext(ctx, "tcp4", p.address)
				if err != nil {
					continue
				}
				opened.Add(1)
				if i%2 == 0 {
					_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
				}
				_ = conn.Close()
				time.Sleep(4 * time.Millisecond) // 8,000 connections a second of all together, at most
			}
		})
	}
	const probes = 12
	began, lost := time.Now(), 0
	for i := range probes {
		if got := statusOrZero(t, []string{"http", "https"}[i%2]+"://"+p.address+"/healthz"); got != http.StatusOK {
			lost++
		}
	}
	t.Logf("%.0f connections a second", float64(opened.Load())/time.Since(began).Seconds())
	stop()
	flood.Wait()
	if lost > 0 {
		t.Errorf("%d of %d probes were lost", lost, probes)
	}
}

// TestProbeEndsItsConnection: a connection over plain HTTP ends with the answer, so that whoever keeps it open takes nothing.
func TestProbeEndsItsConnection(t *testing.T) {
	t.Parallel()
	p := startPort(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(idleTimeout / 2)); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Errorf("answer %q, %v, want one and the end of the connection", answer, err)
	}
}

// TestIdleConnectionEnds: a connection that sends no further request ends, and so does one that never ends the header of its request.
func TestIdleConnectionEnds(t *testing.T) {
	t.Parallel()
	for request, limit := range map[string]time.Duration{"GET / HTTP/1.1\r\nHost: a\r\n\r\n": idleTimeout,
		"GET / HTTP/1.1\r\nHost: ": readHeaderTimeout} {
		synctest.Test(t, func(t *testing.T) {
			listener := bufconn.Listen(memoryBuffer)
			server := newServer(http.NotFoundHandler())
			go func() { _ = server.Serve(listener) }()
			defer server.Close()
			conn, err := listener.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(time.Hour):
				t.Fatalf("%q: the connection is open after an hour", request)
			}
			if passed := time.Since(start); passed > 2*limit {
				t.Errorf("%q: the connection was open for %s, want %s", request, passed, limit)
			}
		})
	}
}
