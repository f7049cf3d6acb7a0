package fabric

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store with one load balancer and a fabric that opens real sockets.
type world struct {
	t     *testing.T
	store *cloud.Store
	lb    *cloud.LoadBalancer
	group *cloud.ServerGroup
	*Fabric
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, cloud.DefaultConfig(), nil)
}

// newWorldOf makes a world of a configuration; change, if not nil, replaces the network of the fabric.
func newWorldOf(t *testing.T, config *cloud.Config, change func(Network) Network) *world {
	t.Helper()
	store, err := cloud.New(config, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store}
	store.Update(func() {
		w.lb = &cloud.LoadBalancer{
			Object: store.NewObject("lb"), Status: cloud.Active, Address: "10.1.200.1", AddressType: "internet",
			VPCID: "vpc-emulator", Listeners: cloud.Listeners{},
		}
		store.LoadBalancers.Add(w.lb)
		w.group = &cloud.ServerGroup{Object: store.NewObject("rsp"), LoadBalancerID: w.lb.ID}
		store.ServerGroups.Add(w.group)
		w.lb.Groups = append(w.lb.Groups, w.group.ID)
	})
	o := Options{Store: store, Listen: true}
	here := &addresses{}
	if change != nil {
		o.Network = change(loopbackNetwork{here, loopbackMachines{here}})
	}
	if w.Fabric = New(o); w.addresses == nil {
		w.addresses = here
	}
	t.Cleanup(func() {
		store.Close()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// machine adds an instance and returns the loopback address that stands for it.
func (w *world) machine(id, ip string) string {
	w.t.Helper()
	w.store.Update(func() {
		if _, err := w.store.AddInstance(id, cloud.InstanceSpec{PrivateIP: ip}, cloud.Steady(cloud.Running)); err != nil {
			w.t.Error(err)
		}
	})
	return w.LoopbackAddress(ip)
}

// backends replaces the backends of the group.
func (w *world) backends(backends ...cloud.Backend) {
	w.store.Update(func() { w.store.SetBackends(w.group, backends) })
	w.Sync()
}

func ecsBackend(id string, port, weight int) cloud.Backend {
	return cloud.Backend{ServerID: id, Type: "ecs", Port: port, Weight: weight}
}

// listener starts a listener, or changes it, and returns where it accepts.
func (w *world) listener(protocol string, port int, attributes map[string]string) string {
	w.t.Helper()
	key := cloud.ListenerKey{Port: port, Protocol: protocol}
	w.store.Update(func() {
		w.lb.Listeners[key] = &cloud.Listener{
			Object: w.store.NewObject("listener"), ListenerKey: key, ServerGroupID: w.group.ID,
			Attributes: maps.Clone(attributes), Phase: cloud.Steady(cloud.ListenerRunning),
		}
	})
	w.Sync()
	where := w.Endpoint(w.lb.ListenerID(key))
	if where == "" {
		w.t.Fatalf("the %s listener has no socket", protocol)
	}
	return where
}

func (w *world) status(protocol string, port int, backend cloud.Backend) string {
	found, _ := w.Health(w.lb.ListenerID(cloud.ListenerKey{Port: port, Protocol: protocol}), backend.BackendID())
	return found.Status
}

// server is a TCP server on a machine that greets with its name and then echoes.
type server struct {
	name   string
	socket net.Listener
	wait   sync.WaitGroup
	mu     sync.Mutex
	open   map[net.Conn]struct{} // guarded by mu
}

func listenOn(t *testing.T, network, host string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newServer(t *testing.T, name, host string) *server {
	t.Helper()
	s := &server{name: name, socket: listenOn(t, "tcp", host), open: map[net.Conn]struct{}{}}
	s.wait.Go(s.run)
	t.Cleanup(s.stop)
	return s
}

func (s *server) port() int { return s.socket.Addr().(*net.TCPAddr).Port }

func (s *server) run() {
	for {
		c, err := s.socket.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[c] = struct{}{}
		s.mu.Unlock()
		s.wait.Go(func() {
			_, _ = io.WriteString(c, s.name)
			_, _ = io.Copy(c, c)
			_ = c.Close()
		})
	}
}

// stop ends the server with its connections.
func (s *server) stop() {
	_ = s.socket.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

func dialTo(t *testing.T, from, where string) (net.Conn, error) {
	t.Helper()
	d := net.Dialer{Timeout: 5 * time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.DialContext(t.Context(), "tcp", where)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(10 * time.Second))
	}
	return c, err
}

// greeting connects, reads the name of whoever answers and closes.
func greeting(t *testing.T, from, where string) (string, error) {
	t.Helper()
	c, err := dialTo(t, from, where)
	if err != nil {
		return "", err
	}
	name, err := read(c)
	return name, errors.Join(err, c.Close())
}

func read(c io.Reader) (string, error) {
	buffer := make([]byte, 200)
	n, err := c.Read(buffer)
	return string(buffer[:n]), err
}

// greetings counts who answers n connections.
func greetings(t *testing.T, where string, n int) map[string]int {
	t.Helper()
	names := map[string]int{}
	for range n {
		names[testkit.Must(greeting(t, "", where))(t)]++
	}
	return names
}

// newWebServer starts an HTTP server on a machine and returns its port.
func newWebServer(t *testing.T, host string, handler http.HandlerFunc) int {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	_ = s.Listener.Close()
	s.Listener = listenOn(t, "tcp", host)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
