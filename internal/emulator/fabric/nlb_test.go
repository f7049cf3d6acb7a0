package fabric

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestNLBSourceHash(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one, two := newServer(t, "one", w.machine("i-a", "10.1.32.1")), newServer(t, "two", w.machine("i-b", "10.2.32.1"))
	where := w.at(w.open("TCP", 80, nil))
	w.servers(ecsServer("i-a", one.port(), 100), ecsServer("i-b", two.port(), 100))
	w.change(func() { w.pool.Scheduler = "sch" })
	wantEqual(t, "one source", len(greetings(t, where, 8)), 1)
	names := map[string]bool{}
	for i := range 20 {
		names[testkit.Must(greeting(t, "127.3.1."+itoa(i+1), where))(t)] = true
	}
	wantEqual(t, "several sources", len(names), 2)
	w.change(func() { w.pool.Scheduler = "tch" })
	wantEqual(t, "one source, several ports", len(greetings(t, where, 20)), 2)
}

func TestNLBPortRange(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	host := w.machine("i-a", "10.1.33.1")
	// The client's port is that of the server: two servers of one machine, on ports next to each other or not.
	one, two := newServer(t, "one", host), newServer(t, "two", host)
	w.change(func() { w.pool.AnyPort = true })
	first, last := min(one.port(), two.port()), max(one.port(), two.port())
	l := w.open("TCP", 0, func(l *cloud.NLBListener) { l.Start, l.End = first, last })
	w.servers(ecsServer("i-a", 0, 100))
	w.machine("i-client", "10.1.33.9")
	for _, s := range []*server{one, two} {
		c := testkit.Must(w.Dial(t.Context(), "i-client", "tcp", net.JoinHostPort(vipB, itoa(s.port()))))(t)
		wantEqual(t, "from a machine", testkit.Must(read(c))(t), s.name)
		_ = c.Close()
	}
	if _, err := w.Dial(t.Context(), "i-client", "tcp", net.JoinHostPort(vipB, itoa(last+1))); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a port outside the range: %v", err)
	}
	lowest := map[int]string{one.port(): "one", two.port(): "two"}[first]
	wantEqual(t, "by the socket of the first port", testkit.Must(greeting(t, "", w.at(l)))(t), lowest)
	if n := len(w.Endpoints(l.ListenerID())); n > 2*portsWithSockets {
		t.Errorf("%d sockets", n)
	}
}

func TestNLBWeightZeroAndDrain(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one, two := newServer(t, "one", w.machine("i-a", "10.1.34.1")), newServer(t, "two", w.machine("i-b", "10.2.34.1"))
	w.change(func() { w.pool.ConnectionDrain, w.pool.ConnectionDrainTimeout = true, 1 })
	where := w.at(w.open("TCP", 80, nil))
	w.servers(ecsServer("i-a", one.port(), 100))
	c := testkit.Must(dialTo(t, "", where))(t)
	defer c.Close()
	wantEqual(t, "established", testkit.Must(read(c))(t), "one")
	w.servers(ecsServer("i-a", one.port(), 0), ecsServer("i-b", two.port(), 100))
	wantEqual(t, "weight 0 gets no new ones", greetings(t, where, 5), map[string]int{"two": 5})
	_ = testkit.Must(io.WriteString(c, "still here"))(t)
	wantEqual(t, "and keeps the established one", testkit.Must(read(c))(t), "still here")

	leaving := ecsServer("i-a", one.port(), 100)
	leaving.Phase = cloud.Steady(cloud.NLBRemoving)
	began := time.Now()
	w.servers(leaving, ecsServer("i-b", two.port(), 100))
	wantEqual(t, "one that leaves gets no new ones", greetings(t, where, 5), map[string]int{"two": 5})
	_ = testkit.Must(io.WriteString(c, "x"))(t)
	wantEqual(t, "it keeps the established one at first", testkit.Must(read(c))(t), "x")
	if _, err := read(c); err == nil || time.Since(began) < time.Second {
		t.Errorf("ended with %v after %s, want an end after the timeout of 1s", err, time.Since(began))
	}
}

func TestNLBWithoutDrainConnectionsGoOn(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.35.1"))
	where := w.at(w.open("TCP", 80, nil))
	w.servers(ecsServer("i-a", one.port(), 100))
	c := testkit.Must(dialTo(t, "", where))(t)
	defer c.Close()
	testkit.Must(read(c))(t)
	w.servers()
	wantEqual(t, "nothing ends it", len(w.conns.where(func(c *conn) bool { return c.drain != nil })), 0)
	_ = testkit.Must(io.WriteString(c, "x"))(t)
	wantEqual(t, "it goes on", testkit.Must(read(c))(t), "x")
}

// TestNLBJobsDoNotInterrupt: a listener and a server that are being changed go on; one that is being added or stopped does not serve.
func TestNLBJobsDoNotInterrupt(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.36.1"))
	l := w.open("TCP", 80, nil)
	s := ecsServer("i-a", one.port(), 100)
	w.servers(s)
	where := w.at(l)
	serves := func() bool {
		t.Helper()
		_, err := greeting(t, "", where)
		return err == nil
	}
	for status, want := range map[string]bool{cloud.NLBConfiguring: true, cloud.NLBAdding: false, cloud.NLBRemoving: false,
		cloud.Available: true} {
		w.change(func() { s.Phase = cloud.Steady(status) })
		wantEqual(t, "a server that is "+status, serves(), want)
	}
	w.change(func() { s.Phase = cloud.Steady(cloud.Available) })
	c := testkit.Must(dialTo(t, "", where))(t)
	defer c.Close()
	testkit.Must(read(c))(t)
	now := time.Now()
	for _, phase := range []cloud.Phase{
		w.store.BeginFor(cloud.NLBConfiguring, cloud.NLBActive, now, time.Hour), cloud.Steady(cloud.NLBActive),
	} {
		w.change(func() { w.nlb.Phase = phase })
		wantEqual(t, "an instance that is "+phase.At(now), serves(), true)
	}
	w.change(func() { l.Phase = w.store.BeginFor(cloud.NLBConfiguring, cloud.Running, now, time.Hour) })
	wantEqual(t, "a running listener that is changed", serves(), true)
	_ = testkit.Must(io.WriteString(c, "x"))(t)
	wantEqual(t, "what is connected stays so", testkit.Must(read(c))(t), "x")
	for _, phase := range []cloud.Phase{
		w.store.BeginFor(cloud.NLBConfiguring, cloud.Stopped, now, time.Hour), cloud.Steady(cloud.Stopped), cloud.Steady(cloud.Deleting),
	} {
		w.change(func() { l.Phase = phase })
		wantEqual(t, "sockets of a listener that is "+phase.At(now)+", then "+phase.End(), len(w.Endpoints(l.ListenerID())), 0)
	}
}

func TestNLBProxyProtocol(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	socket := listenOn(t, "tcp", w.machine("i-a", "10.1.37.1"))
	defer socket.Close()
	w.change(func() { w.nlb.Zones[0].PublicIP = "198.18.0.77" })
	w.servers(ecsServer("i-a", socket.Addr().(*net.TCPAddr).Port, 100))
	l := w.open("TCP", 80, func(l *cloud.NLBListener) { l.ProxyProtocol, l.ProxyProtocolV2 = true, `{"Ppv2VpcIdEnabled":true}` })
	header := func(vip string) (h *proxyproto.Header, client net.Addr) {
		t.Helper()
		c := testkit.Must(dialTo(t, "127.3.0.9", w.where(l, vip, 80)))(t)
		defer c.Close()
		backend := testkit.Must(socket.Accept())(t)
		defer backend.Close()
		return testkit.Must(proxyproto.Read(bufio.NewReader(backend)))(t), c.LocalAddr()
	}
	values := func(h *proxyproto.Header) []string {
		t.Helper()
		var all []string
		for _, v := range testkit.Must(h.TLVs())(t) {
			all = append(all, string(v.Value))
		}
		return all
	}
	h, client := header(vipB)
	wantEqual(t, "from the VPC", []any{int(h.Version), h.SourceAddr.String(), h.DestinationAddr.String(), values(h)},
		[]any{2, "10.3.0.9:" + itoa(client.(*net.TCPAddr).Port), vipB + ":80", []string{"\x01vpc-emulator"}})
	h, _ = header("198.18.0.77")
	wantEqual(t, "from the internet", []any{h.DestinationAddr.String(), values(h)}, []any{vipA + ":80", []string(nil)})
	w.change(func() { l.ProxyProtocolV2 = "" })
	h, _ = header(vipA)
	wantEqual(t, "without the VPC", values(h), []string(nil))
}

// noting is a network that notes for whom the load balancer connects.
type noting struct {
	Network
	mu      sync.Mutex
	clients []netip.AddrPort // guarded by mu
}

func (n *noting) Dial(ctx context.Context, id, network, addr string, client netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.clients = append(n.clients, client)
	n.mu.Unlock()
	return n.Network.Dial(ctx, id, network, addr, client)
}

func (n *noting) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clients[len(n.clients)-1].Addr().String()
}

func TestNLBPreservesClients(t *testing.T) {
	t.Parallel()
	network := &noting{}
	w := asNLBWorld(newWorldOf(t, cloud.DefaultConfig(), func(n Network) Network {
		network.Network = n
		return network
	}))
	one := newServer(t, "one", w.machine("i-a", "10.1.38.1"))
	w.servers(ecsServer("i-a", one.port(), 100))
	where := w.at(w.open("TCP", 80, nil))
	testkit.Must(greeting(t, "127.3.0.9", where))(t)
	wantEqual(t, "on", network.last(), "10.3.0.9")
	w.change(func() { w.pool.PreserveClientIP = false })
	testkit.Must(greeting(t, "127.3.0.9", where))(t)
	wantEqual(t, "off: the load balancer itself", network.last(), netip.Addr{}.String())
}

// TestNLBServersOfAllKinds: instances, interfaces, containers and addresses, which have zones of their own.
func TestNLBServersOfAllKinds(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "ecs", w.machine("i-a", "10.1.39.1"))
	var container *cloud.Interface
	w.store.Update(func() {
		container = testkit.Must(w.store.AddContainer("",
			cloud.ContainerSpec{InstanceID: "eci-1", VSwitchID: "vsw-b", PrivateIP: "10.2.39.2"}))(t)
	})
	two := newServer(t, "eci", w.LoopbackAddress("10.2.39.2"))
	server := func(id, ip, kind, zone string, port int) *cloud.NLBServer {
		return &cloud.NLBServer{ID: id, IP: ip, Type: kind, ZoneID: zone, Port: port, Weight: 100, Phase: cloud.Steady(cloud.Available)}
	}
	l := w.open("TCP", 80, nil)
	for name, s := range map[string]*cloud.NLBServer{
		"ecs": server("i-a", "10.1.39.1", "Ecs", zoneA, one.port()), "ecs by address": server("10.1.39.1", "10.1.39.1", "Ip", "", one.port()),
		"eci":              server("eci-1", "10.2.39.2", "Eci", "", two.port()),
		"eci by interface": server(container.ID, "10.2.39.2", "Eni", zoneB, two.port()),
	} {
		w.servers(s)
		wantEqual(t, name, testkit.Must(greeting(t, "", w.where(l, vipA, 80)))(t), name[:3])
	}
	w.change(func() { w.nlb.CrossZone = false })
	w.servers(server("10.1.39.1", "10.1.39.1", "Ip", "", one.port()), server("eci-1", "10.2.39.2", "Eci", "", two.port()))
	wantEqual(t, "zones of addresses", []map[string]int{greetings(t, w.where(l, vipA, 80), 3), greetings(t, w.where(l, vipB, 80), 3)},
		[]map[string]int{{"ecs": 3}, {"eci": 3}})
}
