//go:build unix && fleet

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// crossing stands between a running manager and a product of the cloud: it leads to one emulator or another. So the same process can be
// given another account, or the same account with other rights, from one call to the next.
type crossing struct {
	address string // host:port
	target  atomic.Pointer[neturl.URL]
	passed  atomic.Int64 // calls so far
}

func newCrossing(t *testing.T, to string) *crossing {
	t.Helper()
	c := &crossing{}
	c.lead(t, to)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.target.Load())
			r.Out.Host = r.In.Host
		},
		// A connection that the emulator breaks off is broken off here, too: an answer would be another fault.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.passed.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c.address = strings.TrimPrefix(server.URL, "http://")
	return c
}

// lead sends the calls from now on to another emulator.
func (c *crossing) lead(t *testing.T, to string) {
	t.Helper()
	target, err := neturl.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	c.target.Store(target)
}

// otherCloud serves an emulator with a configuration of its own, and with instances of these ids, and returns its URL.
func otherCloud(t *testing.T, config *emulator.Config, instances ...string) string {
	t.Helper()
	other, err := emulator.New(emulator.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range instances {
		if _, err := other.PutInstance(id, emulator.InstanceSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(other.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// alteredCloud serves the emulator at url with another list of instances in its answers than the one that it gives.
func alteredCloud(t *testing.T, url string, change func(instances []any) []any) string {
	t.Helper()
	target, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(response *http.Response) error {
		var answer map[string]any
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			return err
		}
		if list, ok := answer["Instances"].(map[string]any); ok {
			list["Instance"] = change(list["Instance"].([]any))
		}
		text, err := json.Marshal(answer)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		response.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}
