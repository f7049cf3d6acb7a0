package emulator_test

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

func TestElasticAddressOfAnIntranetLoadBalancer(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Machines: newMachines(t), Fabric: true})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	port := freePort(t)
	number := must(strconv.Atoi(port))(t)
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), number)
	must(0, a.startListener(lb, number))(t)
	own := net.JoinHostPort(a.describeLB(lb).Address, port)
	made := must(a.vpc.AllocateEipAddress(vpcapi.CreateAllocateEipAddressRequest()))(t)
	id, address := made.AllocationId, made.EipAddress
	fromInternet := func(addr string) (string, error) { return ask(a.Fabric().DialVIP(t.Context(), "tcp", addr)) }
	elastic := net.JoinHostPort(address, port)
	if _, err := fromInternet(elastic); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an address that is bound to nothing answers: %v", err)
	}
	_ = must(a.call("vpc", "AssociateEipAddress", map[string]string{"AllocationId": id, "InstanceType": "SlbInstance", "InstanceId": lb}))(t)
	wantEqual(t, "elastic address", must(fromInternet(elastic))(t), "i-1 10.1.0.1:80")
	sockets := a.sockets().ElasticEndpoints
	if len(sockets) != 1 || sockets[0].Address != address {
		t.Fatalf("sockets of elastic addresses %+v, want one of %s", sockets, address)
	}
	// Not simply the loopback address and the port: where another emulator of this host has them, the socket is elsewhere.
	socket := sockets[0].LoopbackEndpoint
	wantEqual(t, "socket", must(ask(new(net.Dialer).DialContext(t.Context(), "tcp", socket)))(t), "i-1 10.1.0.1:80")
	if _, err := fromInternet(own); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("the intranet address answers the internet: %v", err)
	}
	_ = must(a.call("vpc", "UnassociateEipAddress", map[string]string{"AllocationId": id}))(t)
	if _, err := fromInternet(elastic); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an address that was unbound answers: %v", err)
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", socket); err == nil {
		t.Error("the socket of an address that was unbound is open")
	}
	if sockets := a.sockets().ElasticEndpoints; len(sockets) != 0 {
		t.Errorf("sockets %+v are shown for an address that was unbound", sockets)
	}
	wantEqual(t, "own address", must(ask(a.Fabric().Dial(t.Context(), "i-1", "tcp", own)))(t), "i-1 10.1.0.1:80")
}

// freePort is one that nobody on this host listens on, also no other emulator: those of tests share the loopback addresses.
func freePort(t *testing.T) string {
	t.Helper()
	listener := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	must(0, listener.Close())(t)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return must(port, err)(t)
}
