package emulator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func (a *account) deleteGroup(id string) error {
	r := slbapi.CreateDeleteVServerGroupRequest()
	r.VServerGroupId = id
	_, err := a.slb.DeleteVServerGroup(r)
	return err
}

func (a *account) addBackends(group, backends string) error {
	r := slbapi.CreateAddVServerGroupBackendServersRequest()
	r.VServerGroupId, r.BackendServers = group, backends
	_, err := a.slb.AddVServerGroupBackendServers(r)
	return err
}

func (a *account) removeBackends(group, backends string) error {
	r := slbapi.CreateRemoveVServerGroupBackendServersRequest()
	r.VServerGroupId, r.BackendServers = group, backends
	_, err := a.slb.RemoveVServerGroupBackendServers(r)
	return err
}

// backend servers describes a group as "server:port=weight", in order.
func (a *account) servers(group string) []string {
	a.t.Helper()
	r := slbapi.CreateDescribeVServerGroupAttributeRequest()
	r.VServerGroupId = group
	answer := testkit.Must(a.slb.DescribeVServerGroupAttribute(r))(a.t)
	return sorted(answer.BackendServers.BackendServer, func(b slbapi.BackendServerInDescribeVServerGroupAttribute) string {
		return fmt.Sprintf("%s:%d=%d", b.ServerId, b.Port, b.Weight)
	})
}

func TestGroupBackends(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	for _, id := range []string{"i-1", "i-2", "i-3"} {
		a.put(id, emulator.InstanceSpec{})
	}
	lb := a.newLB()
	// Lower camel case as the official CCM writes it, quoted numbers, and keys that nobody knows.
	group := a.newGroup(lb, `[{"serverId":"i-1","port":"80","weight":"10","type":"ecs","IsUserManaged":false,"NodeName":"n"}]`)
	testkit.Must(0, a.addBackends(group, `[{"ServerId":"i-2","Port":80,"Type":"ecs"},{"ServerId":"i-1","Port":81,"Weight":0}]`))(t)
	wantEqual(t, "added", a.servers(group), []string{"i-1:80=10", "i-1:81=0", "i-2:80=100"})

	set := slbapi.CreateSetVServerGroupAttributeRequest()
	set.VServerGroupId, set.VServerGroupName, set.BackendServers = group, "renamed", `[{"ServerId":"i-2","Port":80,"Weight":5}]`
	testkit.Must(a.slb.SetVServerGroupAttribute(set))(t)
	set.BackendServers = ""
	testkit.Must(a.slb.SetVServerGroupAttribute(set))(t)
	wantEqual(t, "weight", a.servers(group), []string{"i-1:80=10", "i-1:81=0", "i-2:80=5"})
	set.BackendServers = `[{"ServerId":"i-3","Port":80}]`
	_, err := a.slb.SetVServerGroupAttribute(set)
	wantCode(t, err, "InvalidServerId.NotExist", 400)

	testkit.Must(0, a.removeBackends(group, `[{"ServerId":"i-1","Port":81},{"ServerId":"i-3","Port":1}]`))(t)
	modify := slbapi.CreateModifyVServerGroupBackendServersRequest()
	modify.VServerGroupId, modify.OldBackendServers, modify.NewBackendServers = group, `[{"ServerId":"i-1","Port":80}]`, `[{"ServerId":"i-3","Port":82,"Weight":1}]`
	testkit.Must(a.slb.ModifyVServerGroupBackendServers(modify))(t)
	wantEqual(t, "swapped", a.servers(group), []string{"i-2:80=5", "i-3:82=1"})

	list := slbapi.CreateDescribeVServerGroupsRequest()
	list.LoadBalancerId = lb
	groups := testkit.Must(a.slb.DescribeVServerGroups(list))(t).VServerGroups.VServerGroup
	wantEqual(t, "list", []any{len(groups), groups[0].VServerGroupId, groups[0].VServerGroupName, groups[0].ServerCount},
		[]any{1, group, "renamed", int64(2)})
	testkit.Must(0, a.deleteGroup(group))(t)
	wantCode(t, a.deleteGroup(group), "InvalidParameter", 404)
}

func TestInterfaceBackends(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	i := a.put("i-1", emulator.InstanceSpec{})
	group := a.newGroup(a.newLB(), fmt.Sprintf(`[{"ServerId":%q,"ServerIp":%q,"Port":80,"Type":"eni"}]`, i.NetworkInterfaceID, i.PrivateIP))
	wantEqual(t, "backend servers", a.servers(group), []string{i.NetworkInterfaceID + ":80=100"})
	wantCode(t, a.addBackends(group, `[{"ServerId":"eni-none","Port":80,"Type":"eni"}]`), "ResourceNotFound.vServers", 404)
}

func TestBackendRefusals(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Quotas.BackendsPerLB = 3
	a := newAccount(t, emulator.Options{Config: config})
	a.put("i-1", emulator.InstanceSpec{})
	a.put("i-off", emulator.InstanceSpec{Status: "Stopped"})
	lb := a.newLB()
	group, second := a.newGroup(lb, ""), a.newGroup(lb, `[{"ServerId":"i-1","Port":1}]`)
	item := `{"ServerId":"i-1","Port":80}`
	tests := []struct {
		name, backends, code string
		status               int
	}{
		{"unknown server", `[{"ServerId":"i-none","Port":80}]`, "InvalidServerId.NotExist", 400},
		{"stopped server", `[{"ServerId":"i-off","Port":80}]`, "ObtainIpFail", 400},
		{"weight", `[{"ServerId":"i-1","Port":80,"Weight":101}]`, "InvalidParameter", 400},
		{"port", `[{"ServerId":"i-1","Port":0}]`, "InvalidParameter", 400},
		{"no server", `[{"Port":80}]`, "MissingParameter", 400},
		{"type", `[{"ServerId":"i-1","Port":80,"Type":"vm"}]`, "InvalidParameter", 400},
		{"not JSON", `i-1`, "InvalidParameter", 400},
		{"too many in a call", "[" + strings.Repeat(item+",", 40) + item + "]", "TooManyBackendServers", 400},
		{"quota over all groups", `[{"ServerId":"i-1","Port":2},{"ServerId":"i-1","Port":3},{"ServerId":"i-1","Port":4}]`,
			"InstanceBackendServerNumberOverLimit", 400},
	}
	for _, test := range tests {
		err := a.addBackends(group, test.backends)
		t.Run(test.name, func(t *testing.T) { wantCode(t, err, test.code, test.status) })
	}
	wantEqual(t, "nothing was added", a.servers(group), []string(nil))
	a.newTCP(lb, second, 80)
	wantCode(t, a.deleteGroup(second), "RspoolVipExist", 400)
}

func TestGroupSettles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: time.Second})
		a.put("i-1", emulator.InstanceSpec{})
		group := a.newGroup(a.newLB(), "")
		add := func() error { return a.addBackends(group, `[{"ServerId":"i-1","Port":80}]`) }
		wantCode(t, add(), "BackendServer.configuring", 409)
		wantCode(t, add(), "VServerGroupProcessing", 400)
		wantCode(t, add(), "OperationBusy", 400)
		wantCode(t, add(), "SystemBusy", 449)
		wantCode(t, a.deleteGroup(group), "OperationFailed.ServiceGroupProcessing", 400)
		time.Sleep(time.Second)
		testkit.Must(0, add())(t)
	})
}
