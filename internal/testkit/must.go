package testkit

import (
	"net"
	"net/netip"
	"testing"
)

// Must returns the value of a call that must not fail: Must(f())(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// Check fails the test on an error.
func Check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// FreePort returns a TCP port of 127.0.0.1 that nobody listened on a moment ago.
func FreePort(tb testing.TB) int {
	tb.Helper()
	listener := Must(new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0"))(tb)
	Check(tb, listener.Close())
	return int(Must(netip.ParseAddrPort(listener.Addr().String()))(tb).Port())
}
