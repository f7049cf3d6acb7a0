package lightnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fixedServices answers every node port of its map with the same endpoints on each node.
type fixedServices map[int32]forwarding

func (f fixedServices) nodePort(port int32, _ string) (forwarding, error) {
	if to, ok := f[port]; ok {
		return to, nil
	}
	return forwarding{}, syscall.ECONNREFUSED
}

func newTestNetwork(t *testing.T) *Network {
	t.Helper()
	n := NewNetwork(t.Context())
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func mustSwitchOn(t *testing.T, n *Network, id, node, addr string) *machine {
	t.Helper()
	m, err := n.switchOn(id, node, netip.MustParseAddr(addr))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// get sends one HTTP request over conn and returns the body.
func get(t *testing.T, conn net.Conn) string {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://pod/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestDialReachesPods(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	a := mustSwitchOn(t, n, "i-a", "node-a", "10.1.0.1")
	mustSwitchOn(t, n, "i-b", "node-b", "10.1.0.2")
	n.startPod(&runningPod{key: "default/web", name: "web", machine: a, addrs: []netip.Addr{netip.MustParseAddr("10.244.0.2")},
		ports: []int32{80}})
	n.startPod(&runningPod{key: "default/any", name: "any", machine: a, addrs: []netip.Addr{netip.MustParseAddr("10.244.0.3")}})
	n.startPod(&runningPod{key: "default/host", name: "host", machine: a, addrs: []netip.Addr{a.addr}, hostNetwork: true,
		ports: []int32{9100}})

	tests := []struct {
		name, instance, network, addr string
		want                          string // the answer, or
		wantErr                       error
	}{
		{"declared port", "i-a", "tcp", "10.244.0.2:80", "web", nil},
		{"undeclared port", "i-a", "tcp", "10.244.0.2:81", "", syscall.ECONNREFUSED},
		{"pod that declares no port", "i-a", "tcp", "10.244.0.3:12345", "any", nil},
		{"host network", "i-a", "tcp", "10.1.0.1:9100", "host", nil},
		{"no node port", "i-a", "tcp", "10.1.0.1:30000", "", syscall.ECONNREFUSED},
		{"pod of another machine", "i-b", "tcp", "10.244.0.2:80", "", syscall.EHOSTUNREACH},
		{"address of another machine", "i-b", "tcp", "10.1.0.1:9100", "", syscall.EHOSTUNREACH},
		{"unknown machine", "i-c", "tcp", "10.244.0.2:80", "", syscall.EHOSTUNREACH},
		{"datagrams", "i-a", "udp", "10.244.0.2:80", "", net.UnknownNetworkError("udp")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn, err := n.Dial(t.Context(), tt.instance, tt.network, tt.addr)
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("error is %v, want %v", err, tt.wantErr)
			}
			if err != nil {
				return
			}
			if conn.RemoteAddr().String() != tt.addr {
				t.Errorf("remote address is %s, want %s", conn.RemoteAddr(), tt.addr)
			}
			if got := get(t, conn); got != tt.want {
				t.Errorf("%q answered, want %q", got, tt.want)
			}
		})
	}
}

func TestNodePortForwards(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	a := mustSwitchOn(t, n, "i-a", "node-a", "10.1.0.1")
	b := mustSwitchOn(t, n, "i-b", "node-b", "10.1.0.2")
	n.startPod(&runningPod{key: "default/on-a", name: "on-a", machine: a, addrs: []netip.Addr{netip.MustParseAddr("10.244.0.2")}})
	n.startPod(&runningPod{key: "default/on-b", name: "on-b", machine: b, addrs: []netip.Addr{netip.MustParseAddr("10.244.1.2")}})
	n.useServices(fixedServices{
		30080: {name: "default/web:30080", endpoints: []netip.AddrPort{
			netip.MustParseAddrPort("10.244.0.2:80"), netip.MustParseAddrPort("10.244.1.2:80"),
		}},
		30081: {name: "default/empty:30081"},
		30082: {healthCheck: &serviceHealth{LocalEndpoints: 0}},
	})
	dial := func(port int) (net.Conn, error) {
		return n.Dial(t.Context(), "i-a", "tcp", fmt.Sprintf("10.1.0.1:%d", port))
	}

	if conn, err := dial(30080); err != nil {
		t.Fatal(err)
	} else if got := get(t, conn); got != "on-a" {
		t.Errorf("%q answered first, want on-a", got)
	}
	if _, err := dial(30080); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("without a VPC the endpoint on the other machine gives %v, want ENETUNREACH", err)
	}
	var asked []string
	n.UseVPC(func(ctx context.Context, from, network, addr string) (net.Conn, error) {
		asked = append(asked, from+" to "+addr)
		return n.Dial(ctx, "i-b", network, addr)
	})
	for _, want := range []string{"on-a", "on-b", "on-a"} {
		conn, err := dial(30080)
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, conn); got != want {
			t.Errorf("%q answered, want %q", got, want)
		}
	}
	if len(asked) != 1 || asked[0] != "i-a to 10.244.1.2:80" {
		t.Errorf("the VPC was asked for %v, want only for i-a to 10.244.1.2:80", asked)
	}
	if _, err := dial(30081); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a Service without endpoints gives %v, want ECONNREFUSED", err)
	}
	conn, err := dial(30082)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := get(t, conn), `{"service":{"namespace":"","name":""},"localEndpoints":0}`; got != want {
		t.Errorf("health check answered %s, want %s", got, want)
	}
}

func TestConnectionsEndWithTheirPodAndMachine(t *testing.T) {
	t.Parallel()
	ends := map[string]func(n *Network){
		"pod stopped":          func(n *Network) { n.stopPod("default/web") },
		"machine switched off": func(n *Network) { n.switchOff("i-a") },
		"network closed":       func(n *Network) { n.end() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTestNetwork(t)
			a := mustSwitchOn(t, n, "i-a", "node-a", "10.1.0.1")
			n.startPod(&runningPod{key: "default/web", name: "web", machine: a, addrs: []netip.Addr{netip.MustParseAddr("10.244.0.2")}})
			conn, err := n.Dial(t.Context(), "i-a", "tcp", "10.244.0.2:80")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			end(n)
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("reading gives %v, want EOF", err)
			}
			if _, err := n.Dial(t.Context(), "i-a", "tcp", "10.244.0.2:80"); err == nil {
				t.Error("the pod still answers")
			}
		})
	}
}

func TestNodeNameIsTakenOnce(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	mustSwitchOn(t, n, "i-a", "node", "10.1.0.1")
	if _, err := n.switchOn("i-b", "node", netip.MustParseAddr("10.1.0.2")); err == nil {
		t.Error("two machines run under one node name")
	}
	n.switchOff("i-a")
	mustSwitchOn(t, n, "i-b", "node", "10.1.0.2")
}
