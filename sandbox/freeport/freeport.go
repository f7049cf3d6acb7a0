// Package freeport finds TCP ports for programs that take one as an argument.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Find returns different ports of 127.0.0.1 that nobody listened on a moment ago.
func Find(ctx context.Context, n int) (_ []int, err error) {
	var ports []int
	for range n {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
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
