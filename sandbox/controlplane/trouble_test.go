package controlplane

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// TestAPIServerGone: connections break, new ones do too, and afterwards they are served again.
func TestAPIServerGone(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	trouble := &Trouble{}
	listener := &troubledListener{Listener: inner, trouble: trouble}
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first := dial()
	served := <-accepted
	trouble.Set(Ailment{APIServerGone: true})
	for name, conn := range map[string]net.Conn{"one that was open": first, "a new one": dial()} {
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: %d bytes, %v, want it broken", name, n, err)
		}
	}
	_ = served.Close() // as its server does
	if len(trouble.conns) != 0 {
		t.Errorf("%d connections are remembered of a server that has none", len(trouble.conns))
	}
	trouble.Set(Ailment{})
	dial()
	last := <-accepted
	if _, err := io.WriteString(last, "x"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := errors.Join(last.Close(), listener.Close()); err != nil {
		t.Error(err)
	}
}

func TestEtcdTrouble(t *testing.T) {
	t.Parallel()
	trouble := &Trouble{}
	if err := trouble.hinder(t.Context()); err != nil {
		t.Errorf("a healthy one: %v", err)
	}
	trouble.Set(Ailment{EtcdFails: true})
	if err := trouble.hinder(t.Context()); !errors.Is(err, rpctypes.ErrGRPCTimeout) {
		t.Errorf("one that fails: %v", err)
	}
	trouble.Set(Ailment{EtcdDelay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := trouble.hinder(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a slow one whose caller has gone: %v", err)
	}
}
