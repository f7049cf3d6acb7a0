package clouds

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Gateway stands between a running manager and products of the cloud: it leads to one emulator or another. So the same process can be
// given another account, or the same account with other rights, from one call to the next.
type Gateway struct {
	// Address is where it listens, as host:port.
	Address string

	passed atomic.Int64

	mu    sync.Mutex // guards what follows
	to    *url.URL
	ofKey map[string]*url.URL
}

// NewGateway returns a gateway to the emulator with a URL. It ends with the test.
func NewGateway(t *testing.T, to string) *Gateway {
	t.Helper()
	g := &Gateway{ofKey: map[string]*url.URL{}}
	g.Lead(t, to)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(g.target(r.In.URL.Query().Get("AccessKeyId")))
			r.Out.Host = r.In.Host
		},
		// A connection that the emulator breaks off is broken off here, too: an answer would be another fault.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.passed.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.Address = strings.TrimPrefix(server.URL, "http://")
	return g
}

// Lead sends the calls from now on to the emulator with a URL.
func (g *Gateway) Lead(t *testing.T, to string) {
	t.Helper()
	target := parse(t, to)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = target
}

// LeadKey sends the calls that an access key signs to another emulator: the key is one of that account.
func (g *Gateway) LeadKey(t *testing.T, key, to string) {
	t.Helper()
	target := parse(t, to)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ofKey[key] = target
}

// Passed is how many calls it has seen.
func (g *Gateway) Passed() int64 { return g.passed.Load() }

func (g *Gateway) target(key string) *url.URL {
	g.mu.Lock()
	defer g.mu.Unlock()
	if to, ok := g.ofKey[key]; ok {
		return to
	}
	return g.to
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
