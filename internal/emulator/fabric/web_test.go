package fabric

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// newClient is a client that connects to one place whatever the URL says, and follows no redirects.
func newClient(t *testing.T, where string, o func(*http.Transport)) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", where)
	}}
	if o != nil {
		o(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type answer struct {
	status int
	body   string
	header http.Header
	proto  string
}

func fetch(t *testing.T, c *http.Client, url string, header http.Header) answer {
	t.Helper()
	r := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	maps.Copy(r.Header, header)
	response := testkit.Must(c.Do(r))(t)
	defer response.Body.Close()
	return answer{response.StatusCode, string(testkit.Must(io.ReadAll(response.Body))(t)), response.Header, response.Proto}
}

// echoHeaders answers the request's host and the headers that a listener may add.
func echoHeaders(rw http.ResponseWriter, r *http.Request) {
	var lines []string
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Port", "Slb-Ip", "Slb-Id"} {
		lines = append(lines, name+"="+r.Header.Get(name))
	}
	_, _ = io.WriteString(rw, r.Host+" "+strings.Join(lines, " "))
}

func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backends(ecsBackend("i-1", newWebServer(t, w.machine("i-1", "10.1.20.1"), echoHeaders), 100))
	forged := http.Header{"X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Proto": {"forged"}}
	all := map[string]string{
		"XForwardedFor": "on", "XForwardedFor_proto": "on", "XForwardedFor_SLBPORT": "on", "XForwardedFor_SLBIP": "on",
		"XForwardedFor_SLBID": "on",
	}
	c := newClient(t, w.listener("http", 80, all), nil)
	wantEqual(t, "on", fetch(t, c, "http://shop.test/", forged).body,
		"shop.test X-Forwarded-For=192.0.2.1, 127.0.0.1 X-Forwarded-Proto=http X-Forwarded-Port=80 Slb-Ip=10.1.200.1 Slb-Id="+w.lb.ID)
	w.listener("http", 80, map[string]string{"XForwardedFor": "off"})
	wantEqual(t, "off", fetch(t, c, "http://shop.test/", forged).body,
		"shop.test X-Forwarded-For=192.0.2.1 X-Forwarded-Proto= X-Forwarded-Port= Slb-Ip= Slb-Id=")
}

func TestClientSourcePort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backends(ecsBackend("i-1", newWebServer(t, w.machine("i-1", "10.1.21.1"), func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, r.Header.Get("X-Forwarded-Client-Srcport"))
	}), 100))
	where, port := w.listener("http", 80, map[string]string{"XForwardedFor_ClientSrcPort": "on"}), 0
	c := newClient(t, where, func(transport *http.Transport) {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", where)
			if err == nil {
				port = c.LocalAddr().(*net.TCPAddr).Port
			}
			return c, err
		}
	})
	wantEqual(t, "port", fetch(t, c, "http://shop.test/", nil).body, itoa(port))
}

// named answers with a name and sets the application's cookie.
func named(name string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("session"); err == nil {
			rw.Header().Set("Saw", c.Value)
		}
		http.SetCookie(rw, &http.Cookie{Name: "session", Value: "of-" + name, Path: "/"})
		_, _ = io.WriteString(rw, name)
	}
}

func twoNamed(t *testing.T, w *world, net string) {
	t.Helper()
	one := newWebServer(t, w.machine("i-1", net+".1"), named("one"))
	two := newWebServer(t, w.machine("i-2", net+".2"), named("two"))
	w.backends(ecsBackend("i-1", one, 100), ecsBackend("i-2", two, 100))
}

func TestStickyCookies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		attributes map[string]string
		cookie     string
	}{
		{"insert", map[string]string{"StickySession": "on", "StickySessionType": "insert", "CookieTimeout": "60"}, "SERVERID"},
		{"server", map[string]string{"StickySession": "on", "StickySessionType": "server", "Cookie": "session"}, "session"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			twoNamed(t, w, "10.1."+itoa(22+i))
			where := w.listener("http", 80, test.attributes)
			spread := map[string]bool{}
			for range 4 {
				c := newClient(t, where, nil)
				c.Jar = testkit.Must(cookiejar.New(nil))(t)
				first := fetch(t, c, "http://shop.test/", nil)
				spread[first.body] = true
				if !strings.Contains(strings.Join(first.header.Values("Set-Cookie"), " "), test.cookie+"=") {
					t.Fatalf("no cookie %s in %v", test.cookie, first.header)
				}
				for range 4 {
					again := fetch(t, c, "http://shop.test/", nil)
					wantEqual(t, "the cookie keeps the backend, which sees its own value", []string{again.body, again.header.Get("Saw")},
						[]string{first.body, "of-" + first.body})
				}
			}
			wantEqual(t, "new clients spread", len(spread), 2)
		})
	}
}

func TestInsertedCookieExpires(t *testing.T) {
	t.Parallel()
	s, now := stickySettings{mode: stickyInsert, cookie: insertedCookie, timeout: time.Minute}, time.Unix(1000, 0)
	answer := &http.Response{Header: http.Header{}}
	s.mark(answer, heavy, now)
	r := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))(t)
	r.AddCookie(answer.Cookies()[0])
	both := []backend{light, heavy}
	wantEqual(t, "in time", s.preferred(r, both, now.Add(time.Minute)), heavy.id)
	wantEqual(t, "too late", s.preferred(r, both, now.Add(61*time.Second)), none)
	wantEqual(t, "the backend is gone", s.preferred(r, []backend{light}, now), none)
	wantEqual(t, "switched off", stickySettings{}.preferred(r, both, now), none)
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := []struct {
		port, code, host, location string
		status                     int
	}{
		{"443", "", "shop.test", "https://shop.test/cart?id=1", 301},
		{"8443", "307", "shop.test:80", "https://shop.test:8443/cart?id=1", 307},
	}
	for i, test := range tests {
		where := w.listener("http", 80+i, map[string]string{"ListenerForward": "on", "ForwardPort": test.port, "ForwardCode": test.code})
		got := fetch(t, newClient(t, where, nil), "http://"+test.host+"/cart?id=1", nil)
		wantEqual(t, "redirect", []any{got.status, got.header.Get("Location")}, []any{test.status, test.location})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang := make(chan struct{})
	host := w.machine("i-1", "10.1.24.1")
	slow := newWebServer(t, host, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	gone := newServer(t, "", host)
	gone.stop()
	c := newClient(t, w.listener("http", 80, map[string]string{"RequestTimeout": "1"}), nil)
	status := func(backends ...cloud.Backend) int {
		w.backends(backends...)
		return fetch(t, c, "http://shop.test/", nil).status
	}
	wantEqual(t, "nobody", status(), http.StatusServiceUnavailable)
	wantEqual(t, "drained", status(ecsBackend("i-1", slow, 0)), http.StatusServiceUnavailable)
	wantEqual(t, "refused", status(ecsBackend("i-1", gone.port(), 100)), http.StatusBadGateway)
	wantEqual(t, "too slow", status(ecsBackend("i-1", slow, 100)), http.StatusGatewayTimeout)
	good := newWebServer(t, host, named("good"))
	for range 4 {
		wantEqual(t, "one of two refuses", status(ecsBackend("i-1", gone.port(), 100), ecsBackend("i-1", good, 1)), http.StatusOK)
	}
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backends(ecsBackend("i-1", newWebServer(t, w.machine("i-1", "10.1.25.1"), named("one")), 100))
	c := testkit.Must(dialTo(t, "", w.listener("http", 80, map[string]string{"IdleTimeout": "1"})))(t)
	defer c.Close()
	_ = testkit.Must(io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n"))(t)
	testkit.Must(read(c))(t)
	began := time.Now()
	if _, err := io.Copy(io.Discard, c); err != nil && !isReset(err) {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 500*time.Millisecond || took > 8*time.Second {
		t.Errorf("the idle connection ended after %s, want about 1s", took)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backends(ecsBackend("i-1", newWebServer(t, w.machine("i-1", "10.1.26.1"), named("one")), 100))
	w.store.Update(func() {
		for id, name := range map[string]string{"cert-main": "main.test", "cert-extra": "*.extra.test"} {
			w.store.Certificates.Add(&cloud.Certificate{Object: w.store.NewObject(id), CommonName: name})
			c := w.store.Certificates.Select(func(c *cloud.Certificate) bool { return c.CommonName == name })[0]
			if id == "cert-extra" {
				w.store.Extensions.Add(&cloud.DomainExtension{Object: w.store.NewObject("de"), LoadBalancerID: w.lb.ID, ListenerPort: 443, Domain: name,
					CertificateID: c.ID})
			}
		}
	})
	main := w.store.Certificates.Select(func(c *cloud.Certificate) bool { return c.CommonName == "main.test" })[0].ID
	attributes := map[string]string{"ServerCertificateId": main, "EnableHttp2": "on", "TLSCipherPolicy": "tls_cipher_policy_1_2"}
	where := w.listener("https", 443, attributes)
	handshake := func(name string, limit uint16) (*x509.Certificate, error) {
		d := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: limit}} //nolint:gosec // the test looks at what is offered
		c, err := d.DialContext(t.Context(), "tcp", where)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
	}
	for name, want := range map[string]string{"main.test": "main.test", "www.extra.test": "*.extra.test", "extra.test": "main.test",
		"other.test": "main.test"} {
		wantEqual(t, name, testkit.Must(handshake(name, 0))(t).Subject.CommonName, want)
	}
	first, second := testkit.Must(handshake("main.test", 0))(t), testkit.Must(handshake("main.test", 0))(t)
	if !first.Equal(second) {
		t.Error("a self-made certificate is made anew for every connection")
	}
	if _, err := handshake("main.test", tls.VersionTLS11); err == nil {
		t.Error("the policy's lowest version is not enforced")
	}
	trust := func(transport *http.Transport) {
		pool := x509.NewCertPool()
		pool.AddCert(first)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		transport.ForceAttemptHTTP2 = true
	}
	got := fetch(t, newClient(t, where, trust), "https://main.test/", nil)
	wantEqual(t, "over TLS", []any{got.body, got.proto}, []any{"one", "HTTP/2.0"})
	attributes["EnableHttp2"] = "off"
	w.listener("https", 443, attributes)
	wantEqual(t, "HTTP/2 is off", fetch(t, newClient(t, where, trust), "https://main.test/", nil).proto, "HTTP/1.1")
}

func TestDialReachesWebListeners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := newWebServer(t, w.machine("i-1", "10.1.27.1"), echoHeaders)
	w.backends(ecsBackend("i-1", port, 100))
	w.listener("http", 80, map[string]string{"XForwardedFor": "on"})
	c := newClient(t, "", func(transport *http.Transport) {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return w.Dial(ctx, "i-1", "tcp", "10.1.200.1:80")
		}
	})
	if body := fetch(t, c, "http://shop.test/", nil).body; !strings.Contains(body, "X-Forwarded-For=10.1.27.1 ") {
		t.Errorf("answer %q, want the machine as the client", body)
	}
}
