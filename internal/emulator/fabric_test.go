package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	ecsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/ecs"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// machines answer every connection with their id and the address dialed, then end the stream. It stands in for what
// runs on the instances.
type machines struct {
	mu   sync.Mutex
	off  map[string]bool // guarded by mu
	wait sync.WaitGroup
}

func (m *machines) Dial(_ context.Context, id, _, addr string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off[id] {
		return nil, syscall.ECONNREFUSED
	}
	client, server := net.Pipe()
	m.wait.Go(func() {
		_, _ = io.WriteString(server, id+" "+addr)
		_, _ = io.Copy(io.Discard, server)
		_ = server.Close()
	})
	return client, nil
}

func (m *machines) turnOff(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off[id] = true
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	m := &machines{off: map[string]bool{}}
	t.Cleanup(m.wait.Wait)
	return m
}

// ask reads what the other end says first.
func ask(c net.Conn, err error) (string, error) {
	if err != nil {
		return "", err
	}
	buffer := make([]byte, 100)
	n, err := c.Read(buffer)
	return string(buffer[:n]), errors.Join(err, c.Close())
}

func TestRoutesCarryPods(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Machines: newMachines(t)})
	a.put("i-1", emulator.InstanceSpec{})
	b := a.put("i-2", emulator.InstanceSpec{SourceDestCheck: true})
	dial := func(addr string) (string, error) {
		return ask(a.Fabric().Dial(t.Context(), "i-1", "tcp", addr))
	}
	unreachable := func(why, addr string) {
		t.Helper()
		if _, err := dial(addr); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("%s: error = %v, want no route to host", why, err)
		}
	}
	wantEqual(t, "machine", testkit.Must(dial(b.PrivateIP+":22"))(t), "i-2 "+b.PrivateIP+":22")
	const pod = "10.244.2.9:8080"
	unreachable("no route", pod)
	testkit.Must(a.createRoute("10.244.2.0/24", "i-2"))(t)
	unreachable("the next hop checks source and destination", pod)
	modify := ecsapi.CreateModifyNetworkInterfaceAttributeRequest()
	modify.NetworkInterfaceId, modify.SourceDestCheck = b.NetworkInterfaceID, requests.NewBoolean(false)
	testkit.Must(a.ecs.ModifyNetworkInterfaceAttribute(modify))(t)
	wantEqual(t, "pod", testkit.Must(dial(pod))(t), "i-2 "+pod)
	unreachable("nobody has the address", "10.1.9.9:80")
	a.put("i-2", emulator.InstanceSpec{Status: "Stopped"})
	unreachable("the next hop is stopped", pod)
	a.put("i-2", emulator.InstanceSpec{Status: "Running"})
	testkit.Must(a.deleteRoutes("i-2", "10.244.2.0/24"))(t)
	unreachable("the route is gone", pod)
}

func TestListenerBalances(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	a := newAccount(t, emulator.Options{Machines: m})
	for _, id := range []string{"i-1", "i-2", "i-3"} {
		a.put(id, emulator.InstanceSpec{})
	}
	lb := a.newLB()
	a.newTCP(lb,
		a.newGroup(lb,
			`[{"ServerId":"i-1","Port":80,"Weight":30},{"ServerId":"i-2","Port":80,"Weight":10},{"ServerId":"i-3","Port":80,"Weight":0}]`), 80)
	vip := a.describeLB(lb).Address + ":80"
	dial := func() (string, error) {
		answer, err := ask(a.Fabric().Dial(t.Context(), "i-3", "tcp", vip))
		id, _, _ := strings.Cut(answer, " ")
		return id, err
	}
	if _, err := dial(); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a stopped listener answers: %v", err)
	}
	testkit.Must(0, a.startListener(lb, 80))(t)
	share := func() map[string]int {
		n := map[string]int{}
		for range 40 {
			n[testkit.Must(dial())(t)]++
		}
		return n
	}
	wantEqual(t, "by weight", share(), map[string]int{"i-1": 30, "i-2": 10})
	m.turnOff("i-1")
	wantEqual(t, "one refuses", share(), map[string]int{"i-2": 40})
	a.ReleaseInstance("i-2")
	if id, err := dial(); err == nil {
		t.Errorf("%s answers though it is off", id)
	}
	if _, err := a.Fabric().DialVIP(t.Context(), "tcp", vip); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an intranet VIP answers the internet: %v", err)
	}
}

// endpoint reads where a listener's socket is from the admin API; "" when it has none.
func (a *account) endpoint() string {
	a.t.Helper()
	return a.sockets().LoopbackEndpoint
}

// listenerSockets is what the admin API shows of the sockets of a listener.
type listenerSockets struct {
	LoopbackEndpoint string
	ElasticEndpoints []struct{ Address, LoopbackEndpoint string }
}

// sockets reads where the first listener of the first load balancer is; nothing when there is none.
func (a *account) sockets() (found listenerSockets) {
	a.t.Helper()
	_, body := get(a.t, "GET", a.url+"/_emulator/state", "")
	var state struct {
		LoadBalancers []struct{ Listeners []listenerSockets }
	}
	testkit.Must(0, json.Unmarshal([]byte(body), &state))(a.t)
	if len(state.LoadBalancers) > 0 && len(state.LoadBalancers[0].Listeners) > 0 {
		found = state.LoadBalancers[0].Listeners[0]
	}
	return found
}

func TestSocketsFollowTheAPI(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Machines: newMachines(t), Fabric: true})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 8080)
	wantEqual(t, "stopped", a.endpoint(), "")
	testkit.Must(0, a.startListener(lb, 8080))(t)
	where := a.endpoint()
	connect := func() (net.Conn, error) { return new(net.Dialer).DialContext(t.Context(), "tcp", where) }
	answer := testkit.Must(ask(connect()))(t)
	if !strings.HasPrefix(answer, "i-1 ") {
		t.Errorf("the listener answers %q", answer)
	}

	open := testkit.Must(connect())(t)
	buffer := make([]byte, 100)
	testkit.Must(open.Read(buffer))(t)
	a.ReleaseInstance("i-1")
	if _, err := open.Read(buffer); err == nil {
		t.Error("the connection to a released machine goes on")
	}
	testkit.Must(0, open.Close())(t)

	testkit.Must(0, a.stopListener(lb, 8080))(t)
	wantEqual(t, "stopped again", a.endpoint(), "")
	if c, err := connect(); err == nil {
		t.Errorf("a stopped listener accepts on %s", where)
		testkit.Must(0, c.Close())(t)
	}
}

func TestHealthStatusFollowsTheChecks(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	a := newAccount(t, emulator.Options{Machines: m, Fabric: true})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	set := slbapi.CreateSetLoadBalancerTCPListenerAttributeRequest()
	set.LoadBalancerId, set.ListenerPort, set.HealthCheckInterval = lb, requests.NewInteger(80), requests.NewInteger(1)
	set.HealthyThreshold, set.UnhealthyThreshold = requests.NewInteger(2), requests.NewInteger(2)
	testkit.Must(a.slb.SetLoadBalancerTCPListenerAttribute(set))(t)
	testkit.Must(0, a.startListener(lb, 80))(t)
	health := func() string {
		r := slbapi.CreateDescribeHealthStatusRequest()
		r.LoadBalancerId = lb
		return testkit.Must(a.slb.DescribeHealthStatus(r))(t).BackendServers.BackendServer[0].ServerHealthStatus
	}
	wantEqual(t, "one check is below the threshold", health(), "unavailable")
	until := func(want string) {
		t.Helper()
		deadline, tick := time.After(20*time.Second), time.NewTicker(50*time.Millisecond)
		defer tick.Stop()
		for health() != want {
			select {
			case <-deadline:
				t.Fatalf("the backend server is %s, not %s", health(), want)
			case <-tick.C:
			}
		}
	}
	until("normal")
	m.turnOff("i-1")
	until("abnormal")
}

func TestLoopbackMachines(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	b := a.put("i-2", emulator.InstanceSpec{PrivateIP: "10.2.33.44"})
	here := a.Fabric().LoopbackAddress(b.PrivateIP)
	wantEqual(t, "mapping", here, "127.2.33.44")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", here+":0")
	if err != nil {
		// Systems without the whole 127/8 have only 127.0.0.1; there is nothing to map to.
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			return
		}
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.WriteString(c, "hello")
			err = errors.Join(err, c.Close())
		}
		served <- err
	}()
	port := l.Addr().(*net.TCPAddr).Port
	wantEqual(t, "answer", testkit.Must(ask(a.Fabric().Dial(t.Context(), "i-1", "tcp", fmt.Sprintf("10.2.33.44:%d", port))))(t), "hello")
	testkit.Must(0, <-served)(t)
	testkit.Must(0, l.Close())(t)
	wantEqual(t, "outside 10/8", a.Fabric().LoopbackAddress("198.18.0.1"), "127.255.0.1")
	wantEqual(t, "never 127.0.0.x", a.Fabric().LoopbackAddress("10.0.0.7"), "127.255.0.2")
	wantEqual(t, "stable", a.Fabric().LoopbackAddress("198.18.0.1"), "127.255.0.1")
}
