//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Println("vpcnet: skipped: network namespaces need root")
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for something that must happen; it is far above what it takes.
const patience = 20 * time.Second

var worlds atomic.Int32

// world is a cloud with its network, and a client of its OpenAPI.
type world struct {
	t *testing.T
	*Network
	cloud *emulator.Emulator
	api   *alicloud.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, func(*emulator.Config) {})
}

// newWorldOf changes the built-in configuration of the cloud.
func newWorldOf(t *testing.T, change func(*emulator.Config)) *world {
	t.Helper()
	w := &world{t: t}
	config := cloud.DefaultConfig()
	change(config)
	w.Network = testkit.Must(New(t.Context(), Options{Prefix: fmt.Sprintf("t%d", worlds.Add(1))}))(t)
	w.cloud = testkit.Must(emulator.New(emulator.Options{Config: config, Fabric: true, Network: w.Network}))(t)
	w.check(w.Follow(t.Context(), w.cloud))
	server := httptest.NewServer(w.cloud.Handler())
	host := strings.TrimPrefix(server.URL, "http://")
	w.api = testkit.Must(alicloud.New(alicloud.Options{
		Region: "cn-hangzhou", Credentials: alicloud.StaticCredentials{AccessKeyID: "emulator", AccessKeySecret: "emulator-secret"},
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: host, NLB: host, VPC: host, ECS: host},
	}))(t)
	t.Cleanup(func() {
		server.Close()
		if err := errors.Join(w.cloud.Close(), w.Close()); err != nil {
			t.Error(err)
		}
		if err := w.Wait(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// machine puts an instance into the cloud and on the network, with every address of a range as its pods.
func (w *world) machine(id, vSwitch, pods string, spec emulator.InstanceSpec) (emulator.Instance, *Namespace) {
	w.t.Helper()
	spec.VSwitchID = vSwitch
	i := testkit.Must(w.cloud.PutInstance(id, spec))(w.t)
	ns := w.attach(Endpoint{Name: id, Address: netip.MustParseAddr(i.PrivateIP)})
	if pods != "" {
		ownPods(w.t, ns, pods)
	}
	return i, ns
}

func (w *world) attach(e Endpoint) *Namespace {
	w.t.Helper()
	return testkit.Must(w.Attach(w.t.Context(), e))(w.t)
}

// ownPods makes every address of a range one of the machine's own, as if each had a pod.
func ownPods(t *testing.T, ns *Namespace, pods string) {
	t.Helper()
	h := testkit.Must(netlink.NewHandleAt(ns.handle))(t)
	defer h.Close()
	lo := testkit.Must(h.LinkByName("lo"))(t)
	route := netlink.Route{
		LinkIndex: lo.Attrs().Index, Dst: ipNet(netip.MustParsePrefix(pods)), Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL,
		Scope: netlink.SCOPE_HOST,
	}
	if err := h.RouteAdd(&route); err != nil {
		t.Fatal(err)
	}
}

// serve answers on a TCP and a UDP port with a name and the address of whoever asks.
func (w *world) serve(ns *Namespace, name, addr string) {
	w.t.Helper()
	l, p := testkit.Must(ns.Listen(w.t.Context(), addr))(w.t), testkit.Must(ns.ListenPacket(w.t.Context(), addr))(w.t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(c, "%s %s", name, c.RemoteAddr())
			_ = c.Close()
		}
	})
	serving.Go(func() {
		for buffer := make([]byte, 100); ; {
			_, from, err := p.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = p.WriteTo([]byte(name+" "+from.String()), from)
		}
	})
	w.t.Cleanup(func() {
		_, _ = l.Close(), p.Close()
		serving.Wait()
	})
}

// ask connects, says something and returns the answer: who answers, and from which address it was asked.
func ask(ctx context.Context, ns *Namespace, network, addr string) (string, netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := ns.Dial(ctx, network, addr)
	if err != nil {
		return "", netip.AddrPort{}, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	if network == "udp" {
		_, _ = io.WriteString(c, "who?")
	}
	buffer := make([]byte, 100)
	n, err := c.Read(buffer)
	if err != nil {
		return "", netip.AddrPort{}, err
	}
	name, source, _ := strings.Cut(string(buffer[:n]), " ")
	from, _ := netip.ParseAddrPort(source)
	return name, from, nil
}

// answers waits until name answers and returns the address that it saw.
func (w *world) answers(ns *Namespace, network, addr, name string) netip.AddrPort {
	w.t.Helper()
	var source netip.AddrPort
	w.eventually(fmt.Sprintf("%s answers %s at %s/%s", name, ns.Name, network, addr), func() bool {
		who, from, err := ask(w.t.Context(), ns, network, addr)
		source = from
		return err == nil && who == name
	})
	return source
}

// unreachable waits until the network tells the asker that there is no way.
func (w *world) unreachable(ns *Namespace, addr string) {
	w.t.Helper()
	w.eventually(ns.Name+" has no way to "+addr, func() bool {
		_, _, err := ask(w.t.Context(), ns, "tcp", addr)
		return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
	})
}

// swallowed waits until packets to an address are dropped without a word.
func (w *world) swallowed(ns *Namespace, addr string) {
	w.t.Helper()
	w.eventually("packets from "+ns.Name+" to "+addr+" are dropped", func() bool {
		_, _, err := ask(w.t.Context(), ns, "tcp", addr)
		var timeout net.Error
		return errors.As(err, &timeout) && timeout.Timeout()
	})
}

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	testkit.Eventually(w.t, what, func(context.Context) bool { return holds() })
}

// createRoute makes an entry of the system table through the OpenAPI.
func (w *world) createRoute(cidr, instance string) {
	w.t.Helper()
	failed, err := w.api.CreateRouteEntries(w.t.Context(), []alicloud.NewRoute{{TableID: "vtb-emulator", CIDR: cidr, InstanceID: instance}})
	w.check(errors.Join(append(failed, err)...))
}

func (w *world) deleteRoutes() {
	w.t.Helper()
	entries := testkit.Must(w.api.DescribeRouteEntries(w.t.Context(), "vtb-emulator", false))(w.t)
	failed, err := w.api.DeleteRouteEntries(w.t.Context(), entries)
	w.check(errors.Join(append(failed, err)...))
}

// balancer makes a load balancer with one listener through the OpenAPI and returns its VIP.
func (w *world) balancer(addressType string, l alicloud.Listener, servers ...alicloud.Backend) string {
	w.t.Helper()
	lb := alicloud.LoadBalancer{AddressType: addressType, Spec: "slb.s1.small"}
	if addressType == alicloud.AddressIntranet {
		lb.VSwitchID = "vsw-a"
	}
	lb = testkit.Must(w.api.CreateLoadBalancer(w.t.Context(), lb, fmt.Sprintf("%s-%v", w.t.Name(), l.ListenerKey)))(w.t)
	l.VServerGroupID = testkit.Must(w.api.CreateVServerGroup(w.t.Context(), lb.ID, "servers", servers))(w.t)
	w.check(w.api.CreateListener(w.t.Context(), lb.ID, l))
	w.check(w.api.StartListener(w.t.Context(), lb.ID, l.ListenerKey))
	return lb.Address
}

func tcpListener(port int) alicloud.Listener {
	return alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolTCP}, Attributes: alicloud.Attributes{
		"HealthCheckSwitch": "off",
	}}
}

func routeTable(id string) cloud.RouteTableConfig {
	return cloud.RouteTableConfig{ID: id, VPCID: "vpc-emulator"}
}

// dialFrom connects from one of the namespace's own addresses.
func dialFrom(t *testing.T, ns *Namespace, source, addr string) error {
	t.Helper()
	d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := ns.dial(t.Context(), &d, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

func ecsBackend(id string, port int) alicloud.Backend {
	return alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: id, Port: port}, Weight: 100}
}

// request returns the body of an answer, or its status when that is not 200.
func (w *world) request(method, url string, header map[string]string, dial func(context.Context, string, string) (net.Conn, error)) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	r := testkit.Must(http.NewRequestWithContext(ctx, method, url, nil))(w.t)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	answer := testkit.Must(client.Do(r))(w.t)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return strconv.Itoa(answer.StatusCode)
	}
	return string(testkit.Must(io.ReadAll(answer.Body))(w.t))
}
