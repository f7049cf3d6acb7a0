package main

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestAddressesShowOnlyWhatTheyAreFor serves the three of the official CCM, each of which shows nothing of the others.
func TestAddressesShowOnlyWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	profiling := freeAddress(t)
	_, port, err := net.SplitHostPort(profiling)
	if err != nil {
		t.Fatal(err)
	}
	a := addresses{health: freeAddress(t), metrics: freeAddress(t), profiling: ":" + port}
	secure := &net.TCPAddr{Port: 1}
	if err := a.serve(health, secure, stop); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{a.health: "/healthz", a.metrics: "/metrics", profiling: "/debug/pprof/symbol"}
	for address, shown := range own {
		for _, path := range own {
			want := http.StatusNotFound
			if path == shown {
				want = http.StatusOK
			}
			if got := statusOf(t, "http://"+address+path); got != want {
				t.Errorf("%s of the address for %s: status %d, want %d", path, shown, got, want)
			}
		}
	}
	err = (&addresses{metrics: a.metrics}).serve(health, secure, stop)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "--metrics-bind-addr") || strings.Contains(err.Error(), "\n") {
		t.Errorf("address in use: %v, want one line that names the flag", err)
	}
	err = (&addresses{health: a.health}).serve(nil, nil, stop)
	if err == nil || !strings.Contains(err.Error(), "--health-probe-bind-addr") {
		t.Errorf("health where none is computed: %v, want an error that names the flag", err)
	}
}

// TestAddressesOfOldManifests are served where that is safe: health on the port that has it anyway is no second
// listener, and profiles without a host stay on this machine.
func TestAddressesOfOldManifests(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, off := range []addresses{{health: listener.Addr().String()}, {health: "0", metrics: "0", profiling: "0"}, {}} {
		if err := off.check(); err != nil {
			t.Error(err)
		}
		if err := off.serve(http.NotFoundHandler(), listener.Addr(), nil); err != nil {
			t.Errorf("%+v: %v", off, err)
		}
	}
}
