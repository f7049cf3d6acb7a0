//go:build linux

package vpcnet

import (
	"context"
	"net"
)

// Namespace is a network namespace with a name.
type Namespace struct {
	// Name is the file name in /run/netns.
	Name string
	// Path is what `nsenter --net=` takes. Use nsenter and not `ip netns exec`: that mounts a /sys of its own, without cgroups.
	Path string
}

// Do runs f on a thread in the namespace. Sockets that f makes belong to the namespace for ever; goroutines that it starts do not run
// there, so f should look up no names.
func (s *Namespace) Do(_ func()) error { return ErrNotRoot }

// Dial connects from the namespace to "ip:port".
func (s *Namespace) Dial(_ context.Context, _, _ string) (net.Conn, error) { return nil, ErrNotRoot }

// Listen opens a TCP listener in the namespace.
func (s *Namespace) Listen(_ context.Context, _ string) (net.Listener, error) { return nil, ErrNotRoot }

// ListenPacket opens a UDP socket in the namespace.
func (s *Namespace) ListenPacket(_ context.Context, _ string) (net.PacketConn, error) {
	return nil, ErrNotRoot
}
