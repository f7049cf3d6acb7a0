package emulatortest

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"
)

// Machines accept connections on every port, but for those of the instance Refusing.
type Machines struct {
	Refusing string
	wait     sync.WaitGroup
}

// Dial implements fabric.Machines.
func (m *Machines) Dial(_ context.Context, id, _, _ string) (net.Conn, error) {
	if id == m.Refusing {
		return nil, syscall.ECONNREFUSED
	}
	here, there := net.Pipe()
	m.wait.Go(func() {
		_, _ = io.Copy(io.Discard, there)
		_ = there.Close()
	})
	return here, nil
}

// Wait returns when all connections have ended.
func (m *Machines) Wait() { m.wait.Wait() }
