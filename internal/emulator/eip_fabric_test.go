package emulator_test

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestElasticAddressOfAnIntranetLoadBalancer(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Machines: newMachines(t), Fabric: true})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	port := strconv.Itoa(testkit.FreePort(t)) // the loopback addresses of all emulators are the same
	number := testkit.Must(strconv.Atoi(port))(t)
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), number)
	testkit.Must(0, a.startListener(lb, number))(t)
	own := net.JoinHostPort(a.describeLB(lb).Address, port)
	made := testkit.Must(a.vpc.AllocateEipAddress(vpcapi.CreateAllocateEipAddressRequest()))(t)
	id, address := made.AllocationId, made.EipAddress
	fromInternet := func(addr string) (string, error) { return ask(a.Fabric().DialVIP(t.Context(), "tcp", addr)) }
	elastic := net.JoinHostPort(address, port)
	if _, err := fromInternet(elastic); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an address that is bound to nothing answers: %v", err)
	}
	_ = testkit.Must(a.call("vpc", "AssociateEipAddress",
		map[string]string{"AllocationId": id, "InstanceType": "SlbInstance", "InstanceId": lb}))(t)
	wantEqual(t, "elastic address", testkit.Must(fromInternet(elastic))(t), "i-1 10.1.0.1:80")
	sockets := a.sockets().ElasticEndpoints
	if len(sockets) != 1 || sockets[0].Address != address {
		t.Fatalf("sockets of elastic addresses %+v, want one of %s", sockets, address)
	}
	// Not simply the loopback address and the port: where another emulator of this host has them, the socket is elsewhere.
	socket := sockets[0].LoopbackEndpoint
	wantEqual(t, "socket", testkit.Must(ask(new(net.Dialer).DialContext(t.Context(), "tcp", socket)))(t), "i-1 10.1.0.1:80")
	if _, err := fromInternet(own); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("the intranet address answers the internet: %v", err)
	}
	_ = testkit.Must(a.call("vpc", "UnassociateEipAddress", map[string]string{"AllocationId": id}))(t)
	if _, err := fromInternet(elastic); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an address that was unbound answers: %v", err)
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", socket); err == nil {
		t.Error("the socket of an address that was unbound is open")
	}
	if sockets := a.sockets().ElasticEndpoints; len(sockets) != 0 {
		t.Errorf("sockets %+v are shown for an address that was unbound", sockets)
	}
	wantEqual(t, "own address", testkit.Must(ask(a.Fabric().Dial(t.Context(), "i-1", "tcp", own)))(t), "i-1 10.1.0.1:80")
}
