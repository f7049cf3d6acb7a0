//go:build linux

package vpcnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// scene is two machines that serve, and clients in all places.
type scene struct {
	*world
	one, two         *Namespace
	inside, internet *Namespace
}

func newScene(t *testing.T) scene {
	t.Helper()
	w := newWorld(t)
	s := scene{world: w}
	_, s.one = w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{SourceDestCheck: true})
	_, s.two = w.machine("i-2", "vsw-b", "", emulator.InstanceSpec{})
	s.inside = w.attach(Endpoint{Name: "inside", Address: insideAddress, Place: Interface})
	s.internet = w.attach(Endpoint{Name: "internet", Address: internetAddress, Place: Internet})
	w.serve(s.one, "one", "0.0.0.0:30080")
	return s
}

var (
	insideAddress   = netip.MustParseAddr("10.2.200.1")
	internetAddress = netip.MustParseAddr("203.0.113.10")
)

func TestVIPsAreReachableFromWhereTheyShouldBe(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	intranet := s.balancer(alicloud.AddressIntranet, tcpListener(80), ecsBackend("i-1", 30080)) + ":80"
	internet := s.balancer(alicloud.AddressInternet, tcpListener(8080), ecsBackend("i-1", 30080)) + ":8080"
	for _, ns := range []*Namespace{s.two, s.inside} {
		s.answers(ns, "tcp", intranet, "one")
		s.answers(ns, "tcp", internet, "one")
	}
	s.answers(s.internet, "tcp", internet, "one")
	s.unreachable(s.internet, intranet)
}

func TestClientsKeepTheirSourceAddress(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{alicloud.ProtocolTCP, alicloud.ProtocolUDP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			l := alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: protocol},
				Attributes: alicloud.Attributes{"HealthCheckSwitch": "off"}}
			vip := s.balancer(alicloud.AddressInternet, l, ecsBackend("i-1", 30080)) + ":80"
			for want, ns := range map[netip.Addr]*Namespace{insideAddress: s.inside, internetAddress: s.internet} {
				if got := s.answers(ns, protocol, vip, "one"); got.Addr() != want {
					t.Errorf("the backend server sees %s, want the client %s", got, want)
				}
			}
		})
	}
}

func TestSameClientPortOnTwoListenersOfOneBackend(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var vips []string
	for _, port := range []int{80, 81} {
		vips = append(vips, net.JoinHostPort(s.balancer(alicloud.AddressInternet, tcpListener(port), ecsBackend("i-1", 30080)), fmt.Sprint(port)))
	}
	s.answers(s.internet, "tcp", vips[1], "one")
	// Both connections are from one address and port, and go to one backend server.
	const source = "203.0.113.10:40001"
	d := net.Dialer{LocalAddr: testkit.Must(net.ResolveTCPAddr("tcp", source))(t), Control: control(reusable)}
	for _, vip := range vips {
		c := testkit.Must(s.internet.dial(t.Context(), &d, "tcp", vip))(t)
		defer c.Close()
		buffer := make([]byte, 100)
		n := testkit.Must(c.Read(buffer))(t)
		if got := string(buffer[:n]); len(got) < 16 || got[:16] != "one 203.0.113.10" {
			t.Errorf("%s answers %q", vip, got)
		}
	}
}

func TestLayer7ListenersComeFromTheCloud(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	l := testkit.Must(s.one.Listen(t.Context(), "0.0.0.0:30081"))(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", r.Header.Get("X-Forwarded-For"), r.RemoteAddr)
	}))
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	listener := alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolHTTP},
		Attributes: alicloud.Attributes{
			"HealthCheck": "off", "StickySession": "off", "XForwardedFor": "on",
		}}
	vip := s.balancer(alicloud.AddressInternet, listener, ecsBackend("i-1", 30081))
	body := s.get(s.internet, "http://"+vip+"/", nil)
	var forwarded, remote string
	_, _ = fmt.Sscan(body, &forwarded, &remote)
	source, err := netip.ParseAddrPort(remote)
	if err != nil || forwarded != internetAddress.String() || !services.Contains(source.Addr()) {
		t.Errorf("the backend server sees X-Forwarded-For %s from %s, want the client from an address of %s", forwarded, remote, services)
	}
}

// TestProxyProtocolNamesTheClient reads the header by its layout: signature, command, family, length, source, destination, ports.
func TestProxyProtocolNamesTheClient(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	l := testkit.Must(s.one.Listen(t.Context(), "0.0.0.0:30081"))(t)
	headers := make(chan []byte, 1)
	go func() {
		defer close(headers)
		c, err := l.Accept()
		if err != nil {
			return
		}
		header := make([]byte, 28)
		_, _ = io.ReadFull(c, header)
		headers <- header
		_, _ = io.WriteString(c, "seen")
		_ = c.Close()
	}()
	t.Cleanup(func() { _ = l.Close() })
	listener := tcpListener(80)
	listener.Attributes["ProxyProtocolV2Enabled"] = "true"
	vip := s.balancer(alicloud.AddressInternet, listener, ecsBackend("i-1", 30081))
	s.answers(s.internet, "tcp", vip+":80", "seen")
	header := <-headers
	source, _ := netip.AddrFromSlice(header[16:20])
	destination, _ := netip.AddrFromSlice(header[20:24])
	if string(header[:12]) != "\r\n\r\n\x00\r\nQUIT\n" || source != internetAddress || destination.String() != vip {
		t.Errorf("header %x: from %s to %s, want from %s to %s", header, source, destination, internetAddress, vip)
	}
}

// TestBackendIsNotItsOwnClientAtLayer4 holds what the cloud's load balancers cannot do either.
func TestBackendIsNotItsOwnClientAtLayer4(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	vip := s.balancer(alicloud.AddressIntranet, tcpListener(80), ecsBackend("i-1", 30080)) + ":80"
	s.answers(s.two, "tcp", vip, "one")
	if who, _, err := ask(t.Context(), s.one, "tcp", vip); err == nil {
		t.Errorf("%s answers itself", who)
	}
}

func TestReleasedBackendGetsNoConnection(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve(s.two, "two", "0.0.0.0:30080")
	l := tcpListener(80)
	l.Attributes = alicloud.Attributes{
		"HealthCheckSwitch": "on", "HealthCheckType": "tcp", "HealthyThreshold": "2", "UnhealthyThreshold": "2",
		"HealthCheckInterval": "1", "HealthCheckConnectTimeout": "1", "Scheduler": "rr",
	}
	vip := s.balancer(alicloud.AddressInternet, l, ecsBackend("i-1", 30080), ecsBackend("i-2", 30080)) + ":80"
	s.answers(s.internet, "tcp", vip, "one")
	s.answers(s.internet, "tcp", vip, "two")
	s.cloud.ReleaseInstance("i-2")
	s.check(s.Detach("i-2"))
	for range 10 {
		if who, _, err := ask(t.Context(), s.internet, "tcp", vip); err != nil || who != "one" {
			t.Errorf("%q answers, %v; want one", who, err)
		}
	}
}

func TestMetadataIsTheMachinesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, one := w.machine("i-1", "vsw-a", "10.244.1.0/24", emulator.InstanceSpec{})
	_, two := w.machine("i-2", "vsw-b", "", emulator.InstanceSpec{HTTPTokens: "required"})
	rack := w.attach(Endpoint{Name: "rack", Address: netip.MustParseAddr("192.168.7.1"), Place: Premises})
	const base = "http://100.100.100.200/latest/"
	if got := w.get(one, base+"meta-data/instance-id", nil); got != "i-1" {
		t.Errorf("instance-id %q on i-1", got)
	}
	// No route entry knows the pods of i-1 yet.
	if got := w.getFrom(one, "10.244.1.5", base+"meta-data/instance-id"); got != "i-1" {
		t.Errorf("instance-id %q in a pod of i-1", got)
	}
	token := w.put(two, base+"api/token", map[string]string{"X-aliyun-ecs-metadata-token-ttl-seconds": "60"})
	if got := w.get(two, base+"meta-data/instance-id", map[string]string{"X-aliyun-ecs-metadata-token": token}); got != "i-2" {
		t.Errorf("instance-id %q on i-2 with a token", got)
	}
	if got := w.get(two, base+"meta-data/instance-id", nil); got != "403" {
		t.Errorf("%q on i-2 without a token, want 403", got)
	}
	if got := w.get(one, "http://100.100.100.200/_emulator/state", nil); got != "404" {
		t.Errorf("the admin API answers %q to a machine", got)
	}
	w.unreachable(rack, "100.100.100.200:80")
}

func TestCloudServicesInTheVPC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, one := w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{})
	w.serve(w.CloudSide(), "openapi", "100.100.0.80:80")
	w.answers(one, "tcp", "100.100.0.80:80", "openapi")
}

// get returns the body of an answer, or its status when that is not 200.
func (w *world) get(ns *Namespace, url string, header map[string]string) string {
	w.t.Helper()
	return w.request(http.MethodGet, url, header, ns.Dial)
}

func (w *world) put(ns *Namespace, url string, header map[string]string) string {
	w.t.Helper()
	return w.request(http.MethodPut, url, header, ns.Dial)
}

func (w *world) getFrom(ns *Namespace, source, url string) string {
	w.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	return w.request(http.MethodGet, url, nil, func(ctx context.Context, network, addr string) (net.Conn, error) {
		return ns.dial(ctx, &d, network, addr)
	})
}
