// Package freeport finds TCP ports for programs that take one as an argument.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Find returns different ports of 127.0.0.1 that nobody listened on a moment ago.
func Find(ctx context.Context, n int) (ports []int, err error) {
	for range n {
		listener, failed := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if failed != nil {
			return nil, fmt.Errorf("find a free port: %w", failed)
		}
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)  //nolint:forcetypeassert // it listens on TCP
		defer func() { err = errors.Join(err, listener.Close()) }() // together, so that they differ
	}
	return ports, nil
}

// FindOne returns one port, see [Find].
func FindOne(ctx context.Context) (int, error) {
	ports, err := Find(ctx, 1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}
