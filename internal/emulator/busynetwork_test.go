package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
)

// busyNetwork is a network in a kernel that is busy with something else, as vpcnet is while a machine joins: opening and closing
// sockets waits for mu.
type busyNetwork struct {
	mu      sync.Mutex
	entered chan struct{} // takes a value whenever somebody begins to wait for mu, unless it is full
}

func newBusyNetwork() *busyNetwork { return &busyNetwork{entered: make(chan struct{}, 1)} }

func (n *busyNetwork) occupy() {
	select {
	case n.entered <- struct{}{}:
	default:
	}
	n.mu.Lock()
	defer n.mu.Unlock()
}

func (n *busyNetwork) Listen(ctx context.Context, _ fabric.VIP, _ int) (net.Listener, error) {
	n.occupy()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	return busySocket{l, n}, err
}

func (n *busyNetwork) ListenPacket(ctx context.Context, _ fabric.VIP, _ int) (net.PacketConn, error) {
	n.occupy()
	return new(net.ListenConfig).ListenPacket(ctx, "udp", "127.0.0.1:0")
}

func (n *busyNetwork) Source(net.Addr) netip.AddrPort { return netip.AddrPort{} }

func (n *busyNetwork) Dial(context.Context, string, string, string, netip.AddrPort) (net.Conn, error) {
	return nil, net.ErrClosed
}

type busySocket struct {
	net.Listener
	network *busyNetwork
}

func (s busySocket) Close() error {
	s.network.occupy()
	return s.Listener.Close()
}

// quickly makes a request that must not wait for the network.
func (a *account) quickly(method, path string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Errorf("while the network is busy: %v", err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		a.t.Errorf("%s %s answers %s", method, path, response.Status)
	}
}

// While the network works on a listener's socket, everything that only looks at the cloud goes on: reads hold the store's lock, and if
// they waited for the network with it, so would every write after them and every read after those.
func TestReadsDoNotWaitForTheNetwork(t *testing.T) {
	t.Parallel()
	network := newBusyNetwork()
	a := newAccount(t, emulator.Options{Fabric: true, Network: network})
	id := a.newLB()
	a.newTCP(id, a.newGroup(id, ""), 80)
	network.mu.Lock()
	var group sync.WaitGroup
	group.Go(func() {
		if err := a.startListener(id, 80); err != nil {
			t.Error(err)
		}
	})
	<-network.entered
	a.quickly(http.MethodGet, "/_emulator/state")
	// A write that changes no listener, too, though its caller waits until the network has followed.
	group.Go(func() {
		if _, err := a.PutInstance("i-joins", emulator.InstanceSpec{}); err != nil {
			t.Error(err)
		}
	})
	for changed := a.Changed(); len(a.Instances()) == 0; changed = a.Changed() {
		<-changed
	}
	a.quickly(http.MethodGet, "/_emulator/state")
	network.mu.Unlock()
	group.Wait()
	a.quickly(http.MethodGet, "/_emulator/state")
}

// Nodes join and leave, listeners come and go, and everybody looks, all at once.
func TestStateWhileEverythingChanges(t *testing.T) {
	t.Parallel()
	const rounds = 50
	network := newBusyNetwork()
	a := newAccount(t, emulator.Options{Fabric: true, Network: network})
	id := a.newLB()
	group := a.newGroup(id, "")
	var changes, looks sync.WaitGroup
	for i := range 4 {
		changes.Go(func() {
			for range rounds {
				name := fmt.Sprintf("i-%d", i)
				if _, err := a.PutInstance(name, emulator.InstanceSpec{Name: name}); err != nil {
					t.Error(err)
				}
				a.Topology("")
				network.occupy() // as the machine joins
				a.ReleaseInstance(name)
			}
		})
	}
	changes.Go(func() {
		for i := range rounds {
			port := 1000 + i
			_, err := a.createTCP(id, group, port)
			if err := errors.Join(err, a.startListener(id, port), a.deleteListener(id, port, "tcp")); err != nil {
				t.Error(err)
			}
		}
	})
	done := make(chan struct{})
	for range 4 {
		looks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					a.quickly(http.MethodGet, "/_emulator/state")
					a.Topology("")
				}
			}
		})
	}
	changes.Wait()
	close(done)
	looks.Wait()
}
