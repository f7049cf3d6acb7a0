package alicloud_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testCloud is an emulated cloud and a client of it, over HTTP.
type testCloud struct {
	*alicloud.Client
	*emulatortest.Cloud
}

func newCloud(t *testing.T) testCloud {
	t.Helper()
	return newCloudWith(t, emulator.Options{})
}

func newCloudWith(t *testing.T, options emulator.Options) testCloud {
	t.Helper()
	cloud := emulatortest.New(t, options)
	url, transport := cloud.URL(), &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := alicloud.New(alicloud.Options{
		Region:      emulatortest.Region,
		Credentials: alicloud.StaticCredentials{AccessKeyID: emulatortest.AccessKeyID, AccessKeySecret: emulatortest.AccessKeySecret},
		Endpoints:   alicloud.Endpoints{SLB: url, NLB: url, VPC: url, ECS: url, Quotas: url, PlainHTTP: true},
		Transport:   transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return testCloud{Client: client, Cloud: cloud}
}

func TestLoadBalancerRoundTrip(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	want := alicloud.LoadBalancer{
		Name: "a0123", AddressType: alicloud.AddressIntranet, NetworkType: "vpc", VPCID: "vpc-emulator", VSwitchID: "vsw-a",
		InstanceChargeType: "PayByCLCU", DeleteProtection: alicloud.ProtectionOn,
		ModificationProtection: alicloud.ConsoleProtection, ModificationProtectionReason: "managed.by.ack",
		Tags: []alicloud.Tag{{Key: "kubernetes.do.not.delete", Value: "a0123"}, {Key: "empty"}},
	}
	created := testkit.Must(c.CreateLoadBalancer(ctx, want, "token-1"))(t)
	again := testkit.Must(c.CreateLoadBalancer(ctx, want, "token-1"))(t)
	if created.ID == "" || created.Address == "" || again.ID != created.ID {
		t.Fatalf("created %+v, repeated %+v: want one CLB with an address", created, again)
	}

	got := testkit.Must(c.DescribeLoadBalancer(ctx, created.ID))(t)
	ignored := cmpopts.IgnoreFields(alicloud.LoadBalancer{}, "ID", "Address", "Status", "AddressIPVersion", "MasterZoneID", "SlaveZoneID",
		"ResourceGroupID", "InternetChargeType", "Bandwidth", "Spec")
	byKey := cmpopts.SortSlices(func(a, b alicloud.Tag) bool { return a.Key < b.Key })
	if diff := cmp.Diff(want, got, ignored, byKey); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if !got.Active() || got.AddressIPVersion != "ipv4" {
		t.Errorf("active %t, IP version %q", got.Active(), got.AddressIPVersion)
	}

	tag := alicloud.Tag{Key: "kubernetes.do.not.delete", Value: "a0123"}
	for name, query := range map[string]alicloud.LoadBalancerQuery{"tag": {Tag: &tag}, "name": {Name: "a0123"},
		"id": {IDs: []string{created.ID}}} {
		if found := testkit.Must(c.DescribeLoadBalancers(ctx, query))(t); len(found) != 1 || found[0].ID != created.ID {
			t.Errorf("query by %s found %v", name, found)
		}
	}

	testkit.Check(t, c.TagLoadBalancer(ctx, created.ID, []alicloud.Tag{{Key: "k", Value: "v"}}))
	testkit.Check(t, c.UntagLoadBalancer(ctx, created.ID, []string{"empty"}))
	testkit.Check(t, c.SetLoadBalancerName(ctx, created.ID, "renamed"))
	testkit.Check(t, c.SetModificationProtection(ctx, created.ID, alicloud.NonProtection, ""))
	got = testkit.Must(c.DescribeLoadBalancer(ctx, created.ID))(t)
	value, _ := got.Tag("k")
	if _, hasEmpty := got.Tag("empty"); value != "v" || hasEmpty || got.Name != "renamed" ||
		got.ModificationProtection != alicloud.NonProtection {
		t.Errorf("after the changes: %+v", got)
	}

	if err := c.DeleteLoadBalancer(ctx, created.ID); !alicloud.HasCode(err, "OperationDenied.DeleteProtectionIsOn") {
		t.Errorf("delete under protection: %v", err)
	}
	testkit.Check(t, c.SetDeleteProtection(ctx, created.ID, alicloud.ProtectionOff))
	testkit.Check(t, c.DeleteLoadBalancer(ctx, created.ID))
	if _, err := c.DescribeLoadBalancer(ctx, created.ID); !alicloud.IsNotFound(err) {
		t.Errorf("after the delete: %v, want not found", err)
	}
}

func (c testCloud) loadBalancer(t *testing.T) string {
	t.Helper()
	lb := alicloud.LoadBalancer{AddressType: alicloud.AddressIntranet, VPCID: "vpc-emulator", VSwitchID: "vsw-a"}
	return testkit.Must(c.CreateLoadBalancer(t.Context(), lb, t.Name()))(t).ID
}

func TestListenersAndGroups(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	c.Put("i-1", "{}")
	c.Put("i-2", "{}")
	lb := c.loadBalancer(t)
	backend := func(id string, weight int) alicloud.Backend {
		return alicloud.Backend{
			BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: id, Port: 30080}, Weight: weight,
			Description: "k8s/30080/nginx/default/c1",
		}
	}
	group := testkit.Must(c.CreateVServerGroup(ctx, lb, "k8s/30080/nginx/default/c1", []alicloud.Backend{backend("i-1", 100)}))(t)
	testkit.Check(t, c.AddBackends(ctx, group, []alicloud.Backend{backend("i-2", 100)}))
	testkit.Check(t, c.SetBackends(ctx, group, []alicloud.Backend{backend("i-2", 0)}))

	for _, protocol := range []string{alicloud.ProtocolTCP, alicloud.ProtocolUDP} {
		listener := alicloud.Listener{
			ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: protocol}, Description: "k8s/80/nginx/default/c1", VServerGroupID: group,
			Attributes: alicloud.Attributes{"Scheduler": "rr", "HealthCheckInterval": "7"},
		}
		testkit.Check(t, c.CreateListener(ctx, lb, listener))
		testkit.Check(t, c.StartListener(ctx, lb, listener.ListenerKey))
		listener.Attributes = alicloud.Attributes{"Scheduler": "wrr"}
		testkit.Check(t, c.SetListener(ctx, lb, listener))
	}
	listeners := testkit.Must(c.DescribeListeners(ctx, lb))(t)[lb]
	if len(listeners) != 2 {
		t.Fatalf("%d listeners, want 2", len(listeners))
	}
	for _, l := range listeners {
		if l.Status != alicloud.ListenerRunning || l.VServerGroupID != group || l.Description != "k8s/80/nginx/default/c1" ||
			l.Attributes["Scheduler"] != "wrr" || l.Attributes["HealthCheckInterval"] != "7" || l.Attributes["Bandwidth"] != "-1" {
			t.Errorf("listener %s: %+v", l.ListenerKey, l)
		}
	}

	want := alicloud.VServerGroup{
		ID: group, Name: "k8s/30080/nginx/default/c1", LoadBalancerID: lb,
		Backends: []alicloud.Backend{backend("i-1", 100), backend("i-2", 0)},
	}
	if diff := cmp.Diff(want, testkit.Must(c.DescribeVServerGroup(ctx, group))(t)); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	if groups := testkit.Must(c.DescribeVServerGroups(ctx, lb))(t); len(groups) != 1 || groups[0].ID != group {
		t.Errorf("groups of the CLB: %v", groups)
	}

	if err := c.DeleteVServerGroup(ctx, group); !alicloud.IsBusy(err) {
		t.Errorf("delete of a group in use: %v, want busy", err)
	}
	testkit.Check(t, c.DeleteListener(ctx, lb, alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}))
	testkit.Check(t, c.DeleteListener(ctx, lb, alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolUDP}))
	testkit.Check(t,
		c.ReplaceBackends(ctx, group, []alicloud.Backend{backend("i-2", 0)},
			[]alicloud.Backend{{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-2", Port: 30081}, Weight: 100}}))
	testkit.Check(t, c.RemoveBackends(ctx, group, []alicloud.Backend{backend("i-1", 100), backend("i-1", 100)}))
	if left := testkit.Must(c.DescribeVServerGroup(ctx, group))(t).Backends; len(left) != 1 || left[0].Port != 30081 {
		t.Errorf("backend servers left: %v", left)
	}
	testkit.Check(t, c.DeleteVServerGroup(ctx, group))
	if _, err := c.DescribeVServerGroup(ctx, group); !alicloud.IsNotFound(err) {
		t.Errorf("after the delete: %v, want not found", err)
	}
}

// TestStartOfRunningListenerIsSuccess: a new leader starts what its predecessor has started already.
func TestStartOfRunningListenerIsSuccess(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	lb := c.loadBalancer(t)
	listener := alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}}
	listener.VServerGroupID = testkit.Must(c.CreateVServerGroup(ctx, lb, "g", nil))(t)
	testkit.Check(t, c.CreateListener(ctx, lb, listener))
	testkit.Check(t, c.StartListener(ctx, lb, listener.ListenerKey))
	testkit.Check(t, c.StartListener(ctx, lb, listener.ListenerKey))
	c.Fault(`{"action": "StartLoadBalancerListener", "code": "OperationFailed.ListenerStatusNotSupport"}`)
	c.Fault(`{"action": "DescribeLoadBalancerListeners", "code": "InternalError", "status": 500}`)
	if err := c.StartListener(ctx, lb, listener.ListenerKey); !alicloud.IsBusy(err) {
		t.Errorf("error %v, want busy: the state could not be read", err)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	c.Put("i-1", "{}")
	c.Put("i-2", "{}")
	route := func(cidr, instance string) alicloud.NewRoute {
		return alicloud.NewRoute{TableID: "vtb-emulator", CIDR: cidr, InstanceID: instance}
	}
	results := testkit.Must(c.CreateRouteEntries(ctx,
		[]alicloud.NewRoute{route("10.244.0.0/24", "i-1"), route("10.1.0.0/24", "i-1"), route("10.244.1.0/24", "i-2")}))(t)
	if results[0] != nil || results[1] == nil || results[2] != nil {
		t.Errorf("results %v: want only the one inside a vSwitch to fail", results)
	}
	results = testkit.Must(c.CreateRouteEntries(ctx, []alicloud.NewRoute{route("10.244.0.0/24", "i-2")}))(t)
	if !alicloud.IsDuplicate(results[0]) {
		t.Errorf("a CIDR that is there with another next hop: %v, want duplicate", results[0])
	}
	custom := testkit.Must(c.DescribeRouteEntries(ctx, "vtb-emulator", false))(t)
	want := []alicloud.RouteEntry{
		{TableID: "vtb-emulator", CIDR: "10.244.0.0/24", Type: "Custom", Status: alicloud.RouteAvailable,
			NextHops: []alicloud.NextHop{{ID: "i-1", Type: "Instance"}}},
		{TableID: "vtb-emulator", CIDR: "10.244.1.0/24", Type: "Custom", Status: alicloud.RouteAvailable,
			NextHops: []alicloud.NextHop{{ID: "i-2", Type: "Instance"}}},
	}
	if diff := cmp.Diff(want, custom, cmpopts.IgnoreFields(alicloud.RouteEntry{}, "ID")); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	for _, err := range testkit.Must(c.DeleteRouteEntries(ctx, custom))(t) {
		testkit.Check(t, err)
	}
	if err := testkit.Must(c.DeleteRouteEntries(ctx, custom[:1]))(t)[0]; !alicloud.IsNotFound(err) {
		t.Errorf("second delete: %v, want not found", err)
	}
	tables := testkit.Must(c.DescribeRouteTables(ctx, "vpc-emulator"))(t)
	if len(tables) != 1 || tables[0].ID != "vtb-emulator" || !tables[0].System {
		t.Errorf("tables %v", tables)
	}
}

func TestInstancesAndInterfaces(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	c.Put("i-1",
		`{"InstanceName": "n1", "ZoneId": "cn-hangzhou-b", "VSwitchId": "vsw-b", "PrivateIpAddress": "10.2.0.9", "InstanceType": "ecs.g7.large", "Tags": [{"TagKey": "k", "TagValue": "v"}]}`)
	got := testkit.Must(c.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: []string{"i-1", "i-none"}}))(t)
	if len(got) != 1 {
		t.Fatalf("%d instances, want the one that exists", len(got))
	}
	want := alicloud.Instance{
		ID: "i-1", Name: "n1", Type: "ecs.g7.large", RegionID: "cn-hangzhou", ZoneID: "cn-hangzhou-b", VPCID: "vpc-emulator", VSwitchID: "vsw-b",
		Status: alicloud.InstanceRunning, PrivateIPs: []string{"10.2.0.9"}, InterfaceIPs: []string{"10.2.0.9"},
		Tags: map[string]string{"k": "v"},
	}
	ignored := cmpopts.IgnoreFields(alicloud.Instance{}, "HostName", "ChargeType", "SpotStrategy", "PrimaryInterfaceID")
	if diff := cmp.Diff(want, got[0], ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
	c.Put("i-2", `{"PrivateIpAddress": "10.1.0.10"}`) // the filter by address must have an effect
	if byAddress := testkit.Must(c.DescribeInstances(ctx,
		alicloud.InstanceQuery{PrivateIPs: []string{"10.2.0.9"}, VPCID: "vpc-emulator"}))(t); len(byAddress) != 1 {
		t.Errorf("%d instances by address, want 1", len(byAddress))
	}

	testkit.Check(t, c.DisableSourceDestCheck(ctx, got[0].PrimaryInterfaceID))
	interfaces := testkit.Must(c.DescribeNetworkInterfaces(ctx, alicloud.NetworkInterfaceQuery{PrivateIPs: []string{"10.2.0.9"}}))(t)
	if len(interfaces) != 1 || interfaces[0].InstanceID != "i-1" || interfaces[0].SourceDestCheck {
		t.Errorf("interfaces %+v: want that of i-1 with the check off", interfaces)
	}
}

func TestInstancesByTheHundred(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	ids := make([]string, 250)
	for i := range ids {
		ids[i] = "i-none"
	}
	testkit.Must(c.DescribeInstances(t.Context(), alicloud.InstanceQuery{IDs: ids}))(t)
	if got := c.Count(0); got != 3 {
		t.Errorf("%d calls for 250 ids, want 3", got)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	vSwitches := testkit.Must(c.DescribeVSwitches(ctx, "vpc-emulator"))(t)
	if len(vSwitches) != 2 || vSwitches[0].RouteTableID != "vtb-emulator" || !vSwitches[0].InSystemTable || vSwitches[0].AvailableIPs == 0 {
		t.Errorf("vSwitches %+v", vSwitches)
	}
}

// TestLostAnswerIsAmbiguous lets the write happen and drops its answer: the caller must not take it for refused.
func TestLostAnswerIsAmbiguous(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	lb := c.loadBalancer(t)
	c.Fault(`{"action": "CreateVServerGroup", "drop": "after"}`)
	_, err := c.CreateVServerGroup(t.Context(), lb, "g", nil)
	if !alicloud.IsAmbiguous(err) || alicloud.IsBusy(err) {
		t.Errorf("error %v: want ambiguous and not busy", err)
	}
	if groups := testkit.Must(c.DescribeVServerGroups(t.Context(), lb))(t); len(groups) != 1 {
		t.Errorf("%d groups, want the one whose answer was lost", len(groups))
	}
}

// TestLostAnswerOfARead: a connection that breaks once costs a second call and no error; two in a row are one, and a write is
// never repeated.
func TestLostAnswerOfARead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, fault string
		write       bool
		calls       int
		fails       bool
	}{
		{"answer lost", `{"action":"DescribeVSwitches","drop":"after"}`, false, 2, false},
		{"request lost", `{"action":"DescribeVSwitches","drop":"before"}`, false, 2, false},
		{"both lost", `{"action":"DescribeVSwitches","drop":"after","times":2}`, false, 2, true},
		{"refused", `{"action":"DescribeVSwitches","code":"InternalError","status":500}`, false, 1, true},
		{"write", `{"action":"CreateVServerGroup","drop":"before"}`, true, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			lb := c.loadBalancer(t)
			c.Fault(test.fault)
			since := c.Last()
			_, err := c.DescribeVSwitches(t.Context(), "vpc-emulator")
			if test.write {
				since = c.Last()
				_, err = c.CreateVServerGroup(t.Context(), lb, "g", nil)
			}
			if calls := c.Count(since); calls != test.calls || (err != nil) != test.fails {
				t.Errorf("%d calls and error %v, want %d calls, an error: %v", calls, err, test.calls, test.fails)
			}
		})
	}
}

// TestNothingListens: an address without anybody behind it is not tried twice.
func TestNothingListens(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dials := 0
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	client := testkit.Must(alicloud.New(alicloud.Options{
		Region: emulatortest.Region, Credentials: alicloud.StaticCredentials{AccessKeyID: "a", AccessKeySecret: "b"},
		Endpoints: alicloud.Endpoints{PlainHTTP: true, VPC: address}, Transport: transport,
	}))(t)
	if _, err := client.DescribeVSwitches(t.Context(), "vpc-1"); !alicloud.IsAmbiguous(err) || dials != 1 {
		t.Errorf("%d dials and %v, want 1 and no answer", dials, err)
	}
}

func TestCallEndsWithContext(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.DescribeVSwitches(ctx, "vpc-emulator"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// TestConcurrentCalls runs under the race detector: the SDK's own clients do not stand it.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := c.DescribeVSwitches(t.Context(), "vpc-emulator"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
