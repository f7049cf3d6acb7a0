package emulator_test

import (
	"testing"

	ecsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/ecs"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestContainerInstanceBehindAListener(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Machines: newMachines(t)})
	url := a.url + "/_emulator/networkinterfaces/eni-pod"
	status, body := get(t, "PUT", url, `{"InstanceId":"eci-1","VSwitchId":"vsw-b"}`)
	wantEqual(t, "put "+body, status, 200)
	status, _ = get(t, "PUT", url, `{}`)
	wantEqual(t, "put again", status, 409)
	status, _ = get(t, "PUT", url+"2", `{"PrivateIpAddress":"10.2.0.1"}`)
	wantEqual(t, "address in use", status, 409)

	find := ecsapi.CreateDescribeNetworkInterfacesRequest()
	find.PrivateIpAddress = &[]string{"10.2.0.1"}
	found := testkit.Must(a.ecs.DescribeNetworkInterfaces(find))(t).NetworkInterfaceSets.NetworkInterfaceSet
	if len(found) != 1 || found[0].NetworkInterfaceId != "eni-pod" || found[0].InstanceId != "eci-1" {
		t.Fatalf("found %v, want the interface eni-pod of eci-1", found)
	}
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"eni-pod","Type":"eni","ServerIp":"10.2.0.1","Port":8080}]`), 80)
	testkit.Must(0, a.startListener(lb, 80))(t)
	a.put("i-1", emulator.InstanceSpec{})
	vip := a.describeLB(lb).Address + ":80"
	dial := func() (string, error) { return ask(a.Fabric().Dial(t.Context(), "i-1", "tcp", vip)) }
	wantEqual(t, "through the listener", testkit.Must(dial())(t), "eci-1 10.2.0.1:8080")
	status, _ = get(t, "DELETE", url, "")
	wantEqual(t, "delete", status, 204)
	if _, err := dial(); err == nil {
		t.Error("a released container instance still takes connections")
	}
	status, _ = get(t, "DELETE", url, "")
	wantEqual(t, "delete again", status, 404)
}
