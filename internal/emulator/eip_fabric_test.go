package emulator_test

import (
	"errors"
	"net"
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
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	must(0, a.startListener(lb, 80))(t)
	own := a.describeLB(lb).Address + ":80"
	made := must(a.vpc.AllocateEipAddress(vpcapi.CreateAllocateEipAddressRequest()))(t)
	id, address := made.AllocationId, made.EipAddress
	fromInternet := func(addr string) (string, error) { return ask(a.Fabric().DialVIP(t.Context(), "tcp", addr)) }
	real := net.JoinHostPort(a.Fabric().LoopbackAddress(address), "80")
	if _, err := fromInternet(address + ":80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an address that is bound to nothing answers: %v", err)
	}
	_ = must(a.call("vpc", "AssociateEipAddress", map[string]string{"AllocationId": id, "InstanceType": "SlbInstance", "InstanceId": lb}))(t)
	wantEqual(t, "elastic address", must(fromInternet(address+":80"))(t), "i-1 10.1.0.1:80")
	_ = must(ask(new(net.Dialer).DialContext(t.Context(), "tcp", real)))(t)
	if _, err := fromInternet(own); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("the intranet address answers the internet: %v", err)
	}
	_ = must(a.call("vpc", "UnassociateEipAddress", map[string]string{"AllocationId": id}))(t)
	if _, err := fromInternet(address + ":80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an address that was unbound answers: %v", err)
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", real); err == nil {
		t.Error("the socket of an address that was unbound is open")
	}
	wantEqual(t, "own address", must(ask(a.Fabric().Dial(t.Context(), "i-1", "tcp", own)))(t), "i-1 10.1.0.1:80")
}
