package alicloud_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// newNLB is what tests begin with: an internet-facing load balancer in two zones.
func newNLB(name string) alicloud.NLB {
	return alicloud.NLB{
		Name: name, VPCID: emulatortest.VPC, AddressType: alicloud.NLBInternet, AddressIPVersion: alicloud.NLBIPv4,
		Zones: []alicloud.NLBZone{
			{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b", PrivateIPv4: "10.2.0.77"},
		},
		DeletionProtection: true, ModificationProtection: alicloud.ConsoleProtection, ModificationProtectionReason: "managed.by.ack",
		Tags: []alicloud.Tag{{Key: "ack.aliyun.com", Value: "c1"}, {Key: "kubernetes.do.not.delete", Value: name}},
	}
}

func TestNLBRoundTrip(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	want := newNLB("a0123")
	id := testkit.Must(c.CreateNLB(ctx, want, "token-1"))(t)
	if again := testkit.Must(c.CreateNLB(ctx, want, "token-1"))(t); again != id {
		t.Errorf("repeated: %q, want %q", again, id)
	}
	tag := alicloud.Tag{Key: "kubernetes.do.not.delete", Value: "a0123"}
	got := testkit.Must(c.GetNLB(ctx, id))(t)
	ignored := cmpopts.IgnoreFields(alicloud.NLB{}, "ID", "DNSName", "Status", "Zones", "IPv6AddressType", "CrossZone", "ResourceGroupID")
	byKey := cmpopts.SortSlices(func(a, b alicloud.Tag) bool { return a.Key < b.Key })
	if diff := cmp.Diff(want, got, ignored, byKey, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if got.Status != alicloud.NLBActive || !got.CrossZone || !strings.HasPrefix(got.DNSName, id) || len(got.Zones) != 2 ||
		got.Zones[1].PrivateIPv4 != "10.2.0.77" {
		t.Errorf("%+v", got)
	}
	for name, query := range map[string]alicloud.NLBQuery{"tag": {Tag: &tag}, "name": {Names: []string{"a0123"}},
		"id": {IDs: []string{id, "nlb-none"}}} {
		if found := testkit.Must(c.ListNLBs(ctx, query))(t); len(found) != 1 || cmp.Diff(got, found[0], byKey, cmpopts.EquateEmpty()) != "" {
			t.Errorf("by %s: %s", name, cmp.Diff([]alicloud.NLB{got}, found))
		}
	}
	if _, err := c.GetNLB(ctx, "nlb-none"); !alicloud.IsNotFound(err) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestNLBWritesBeginJobs(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	id := testkit.Must(c.CreateNLB(ctx, newNLB("a0123"), "token-1"))(t)
	off, name, none := false, "web", alicloud.NonProtection
	jobs := []alicloud.Job{
		testkit.Must(c.UpdateNLB(ctx, id, alicloud.NLBAttributes{Name: &name, CrossZone: &off}))(t),
		testkit.Must(c.SetNLBAddressType(ctx, id, alicloud.NLBIntranet, nil))(t),
		testkit.Must(c.SetNLBZones(ctx, id,
			[]alicloud.NLBZone{{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b"}}))(t),
	}
	testkit.Check(t, c.ProtectNLB(ctx, id, alicloud.NLBProtection{Deletion: &off, Modification: &none}))
	testkit.Check(t, c.TagNLB(ctx, alicloud.NLBTagLoadBalancer, []string{id}, []alicloud.Tag{{Key: "a", Value: "1"}, {Key: "b"}}))
	testkit.Check(t, c.UntagNLB(ctx, alicloud.NLBTagLoadBalancer, []string{id}, []string{"b"}))
	group := testkit.Must(c.CreateSecurityGroup(ctx,
		alicloud.SecurityGroup{Name: "web", VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, "token-2"))(t)
	jobs = append(jobs, testkit.Must(c.JoinSecurityGroups(ctx, id, []string{group}))(t))
	got := testkit.Must(c.GetNLB(ctx, id))(t)
	if got.Name != name || got.CrossZone || got.AddressType != alicloud.NLBIntranet || got.DeletionProtection ||
		got.ModificationProtection != none ||
		len(got.SecurityGroups) != 1 || got.SecurityGroups[0] != group {
		t.Errorf("%+v", got)
	}
	if value, ok := got.Tag("a"); !ok || value != "1" {
		t.Errorf("tags %v", got.Tags)
	}
	if _, ok := got.Tag("b"); ok {
		t.Errorf("tags %v", got.Tags)
	}
	jobs = append(jobs, testkit.Must(c.LeaveSecurityGroups(ctx, id, []string{group}))(t))
	done := testkit.Must(c.NLBJobs(ctx, jobs))(t)
	for _, job := range jobs {
		if status := testkit.Must(c.NLBJob(ctx, job))(t); status != alicloud.JobSucceeded || done[job] != status {
			t.Errorf("job %s: %v and %v", job, status, done[job])
		}
	}
	if _, err := c.NLBJobs(ctx, []alicloud.Job{jobs[0], "none"}); !alicloud.IsNotFound(err) {
		t.Errorf("an unknown job: %v", err)
	}
	testkit.Must(c.DeleteNLB(ctx, id))(t)
	if _, err := c.GetNLB(ctx, id); !alicloud.IsNotFound(err) {
		t.Errorf("deleted: %v", err)
	}
}

func TestNLBListenersAndGroups(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	c.Put("i-1", "{}")
	id := testkit.Must(c.CreateNLB(ctx, newNLB("a0123"), "token-1"))(t)
	off, http, text, timeout, weight := false, "HTTP", "k8s.80.TCP.web.default.c1", 30, 7
	uri, wrr, on := "/healthz", "Wrr", true
	settings := alicloud.NLBGroupSettings{
		Scheduler: &wrr, ConnectionDrain: &on, DrainTimeout: &timeout,
		HealthCheck: alicloud.NLBHealthCheck{Enabled: &on, Type: &http, URL: &uri, Codes: []string{"http_2xx", "http_3xx"}},
	}
	group, _, err := c.CreateNLBGroup(ctx, alicloud.NLBGroup{
		Name: text, VPCID: emulatortest.VPC, Protocol: alicloud.NLBTCP, Tags: []alicloud.Tag{{Key: "ack.aliyun.com", Value: "c1"}},
		NLBGroupSettings: settings,
	}, "token-2")
	testkit.Check(t, err)
	testkit.Must(c.UpdateNLBGroup(ctx, group, alicloud.NLBGroupSettings{HealthCheck: alicloud.NLBHealthCheck{Enabled: &off}}))(t)
	groups := testkit.Must(c.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &alicloud.Tag{Key: "ack.aliyun.com", Value: "c1"}}))(t)
	if len(groups) != 1 || groups[0].ID != group || *groups[0].HealthCheck.Enabled || *groups[0].HealthCheck.Type != http ||
		*groups[0].DrainTimeout != 30 ||
		groups[0].Status != alicloud.NLBGroupAvailable || groups[0].Type != alicloud.NLBInstanceGroup || !*groups[0].PreserveClientIP {
		t.Errorf("groups %+v", groups)
	}

	server := alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: "i-1", Type: alicloud.NLBServerECS, Port: 30080}, Weight: 100,
		Description: text}
	testkit.Must(c.AddNLBServers(ctx, group, []alicloud.NLBServer{server}))(t)
	if _, err := c.AddNLBServers(ctx, group, []alicloud.NLBServer{server}); !alicloud.IsDuplicate(err) {
		t.Errorf("twice: %v", err)
	}
	if _, err := c.AddNLBServers(ctx, group,
		[]alicloud.NLBServer{{NLBServerKey: alicloud.NLBServerKey{ID: "i-none", Type: alicloud.NLBServerECS,
			Port: 1}}}); !alicloud.IsBadServer(err) {
		t.Errorf("an unknown instance: %v", err)
	}
	server.Weight = weight
	testkit.Must(c.UpdateNLBServers(ctx, group, []alicloud.NLBServer{server}))(t)
	servers := testkit.Must(c.ListNLBServers(ctx, group))(t)
	if diff := cmp.Diff([]alicloud.NLBServer{server}, servers, cmpopts.IgnoreFields(alicloud.NLBServer{}, "Status", "IP")); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}

	ppv2, zero := alicloud.ProxyProtocolV2{VPCID: true}, 0
	listener, _, err := c.CreateNLBListener(ctx, alicloud.NLBListener{
		LoadBalancerID: id, Port: 80, Protocol: alicloud.NLBTCP,
		NLBListenerSettings: alicloud.NLBListenerSettings{Description: &text, ServerGroupID: &group, ProxyProtocol: &on, ProxyProtocolV2: &ppv2},
	}, "token-3")
	testkit.Check(t, err)
	testkit.Must(c.UpdateNLBListener(ctx, listener, alicloud.NLBListenerSettings{IdleTimeout: &timeout, Cps: &zero}))(t)
	listeners := testkit.Must(c.ListNLBListeners(ctx, []string{id}))(t)
	if len(listeners) != 1 || listeners[0].ID != listener || listeners[0].Status != alicloud.NLBListenerRunning ||
		*listeners[0].IdleTimeout != 30 ||
		*listeners[0].ProxyProtocolV2 != ppv2 || *listeners[0].ServerGroupID != group || *listeners[0].Description != text ||
		listeners[0].StartPort != 0 {
		t.Errorf("listeners %+v", listeners)
	}
	if _, err := c.DeleteNLBGroup(ctx, group); !alicloud.IsBusy(err) {
		t.Errorf("a group that a listener uses: %v", err)
	}
	testkit.Must(c.RemoveNLBServers(ctx, group, servers))(t)
	if _, err := c.RemoveNLBServers(ctx, group, servers); !alicloud.IsNotFound(err) {
		t.Errorf("twice: %v", err)
	}
	testkit.Must(c.DeleteNLBListener(ctx, listener))(t)
	testkit.Must(c.DeleteNLBGroup(ctx, group))(t)
}

// TestNLBWritesAreForms: two hundred backend servers in one call are too many for a URL.
func TestNLBWritesAreForms(t *testing.T) {
	t.Parallel()
	var longest int
	client := answering(t, func(w http.ResponseWriter, r *http.Request) {
		longest = max(longest, len(r.URL.RawQuery))
		_, _ = fmt.Fprintf(w, `{"RequestId":"r","JobId":"j","n":%d}`, len(r.PostFormValue("Servers.200.ServerId")))
	})
	servers := make([]alicloud.NLBServer, 200)
	for i := range servers {
		servers[i] = alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: fmt.Sprintf("i-%020d", i), Type: alicloud.NLBServerECS,
			Port: 30080}}
	}
	testkit.Must(client.AddNLBServers(t.Context(), "sgp-1", servers))(t)
	if longest > 1000 {
		t.Errorf("the URL of a write has %d characters", longest)
	}
}

// TestNLBAnswersMustAddUp: a list that lacks something says nothing, in particular not that it is gone.
func TestNLBAnswersMustAddUp(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"too few":       `{"RequestId":"r","TotalCount":2,"LoadBalancers":[{"LoadBalancerId":"nlb-1"}]}`,
		"no count":      `{"RequestId":"r","LoadBalancers":[]}`,
		"token again":   `{"RequestId":"r","TotalCount":9,"NextToken":"t","LoadBalancers":[{"LoadBalancerId":"nlb-1"}]}`,
		"another":       `{"RequestId":"r","TotalCount":1,"LoadBalancers":[{"LoadBalancerId":"nlb-2"}]}`,
		"no request id": `{"TotalCount":0,"LoadBalancers":[]}`,
	} {
		client := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if found, err := client.ListNLBs(t.Context(), alicloud.NLBQuery{IDs: []string{"nlb-1"}}); !alicloud.IsAmbiguous(err) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	client := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"RequestId":"r"}`)) })
	if _, err := client.DeleteNLB(t.Context(), "nlb-1"); !alicloud.IsAmbiguous(err) {
		t.Errorf("a write without a job: %v", err)
	}
}

func TestNLBListsAreReadInPages(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	for i := range 103 {
		_, _, err := c.CreateNLBGroup(ctx, alicloud.NLBGroup{Name: fmt.Sprintf("group-%d", i), VPCID: emulatortest.VPC},
			fmt.Sprintf("token-%d", i))
		testkit.Check(t, err)
	}
	if groups := testkit.Must(c.ListNLBGroups(ctx, alicloud.NLBGroupQuery{}))(t); len(groups) != 103 {
		t.Errorf("%d groups", len(groups))
	}
}

// TestServersPerCallStepsDown: documents of the cloud differ about how many backend servers a call takes.
func TestServersPerCallStepsDown(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	c.Change(func(s *emulator.Settings) { s.Quotas.NLBServersPerCall = 40 })
	group, _, err := c.CreateNLBGroup(t.Context(), alicloud.NLBGroup{Name: "group", VPCID: emulatortest.VPC, Type: alicloud.NLBIPGroup},
		"token")
	testkit.Check(t, err)
	var servers []alicloud.NLBServer
	for i := range 41 {
		address := fmt.Sprintf("10.1.0.%d", i+1)
		servers = append(servers,
			alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: address, IP: address, Type: alicloud.NLBServerIP, Port: 80}, Weight: 1})
	}
	if c.ServersPerCall() != 200 {
		t.Errorf("%d servers in a call at first", c.ServersPerCall())
	}
	if _, err := c.AddNLBServers(t.Context(), group, servers); !alicloud.IsServersPerCall(err) || c.ServersPerCall() != 40 {
		t.Errorf("%v, then %d servers in a call", err, c.ServersPerCall())
	}
	testkit.Must(c.AddNLBServers(t.Context(), group, servers[:40]))(t)
}

func TestSecurityGroupRules(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	want := alicloud.SecurityGroup{
		Name: "k8s-nlb-a0123", Description: "k8s.default.web.c1", VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise,
		Tags: []alicloud.Tag{{Key: "kubernetes.do.not.delete", Value: "a0123"}},
	}
	id := testkit.Must(c.CreateSecurityGroup(ctx, want, "token"))(t)
	rules := []alicloud.SecurityRule{
		{Priority: 1, Protocol: "ALL", Ports: "-1/-1", CIDR: "192.0.2.0/24", Description: "k8s.default.web.c1"},
		{Priority: 1, Protocol: "ALL", Ports: "-1/-1", CIDR: "2001:db8::/32", Description: "k8s.default.web.c1"},
		{Priority: 100, Protocol: "ALL", Ports: "-1/-1", CIDR: "0.0.0.0/0", Drop: true, Description: "k8s.default.web.c1"},
	}
	testkit.Check(t, c.AddSecurityRules(ctx, id, rules))
	got := testkit.Must(c.DescribeSecurityGroup(ctx, id))(t).Rules
	if diff := cmp.Diff(rules, got, cmpopts.IgnoreFields(alicloud.SecurityRule{}, "ID")); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	testkit.Check(t, c.RemoveSecurityRules(ctx, id, got[:1]))
	if left := testkit.Must(c.DescribeSecurityGroup(ctx, id))(t).Rules; len(left) != 2 {
		t.Errorf("left %v", left)
	}
	found := testkit.Must(c.DescribeSecurityGroups(ctx, want.Tags[0]))(t)
	want.ID = id
	if diff := cmp.Diff([]alicloud.SecurityGroup{want}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	testkit.Check(t, c.DeleteSecurityGroup(ctx, id))
	if _, err := c.DescribeSecurityGroup(ctx, id); !alicloud.IsNotFound(err) {
		t.Errorf("deleted: %v", err)
	}
}

// TestNLBIsLimitedApart: NLB has actions of the same names as CLB, with quotas of their own, and reads in windows of a second.
func TestNLBIsLimitedApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := testcloud.New(t, emulator.Options{})
		c.Fault(`{"action":"TagResources","code":"Throttling.User","times":1}`)
		start := time.Now()
		if err := c.Client.TagLoadBalancer(t.Context(), "lb-none", []alicloud.Tag{{Key: "a"}}); !alicloud.IsThrottled(err) {
			t.Fatal(err)
		}
		_ = c.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{"nlb-none"}, []alicloud.Tag{{Key: "a"}})
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("NLB waited %s for CLB", waited)
		}
		c.Fault(`{"action":"ListListeners","code":"Throttling.User","times":1}`)
		if _, err := c.Client.ListNLBListeners(t.Context(), []string{"nlb-none"}); !alicloud.IsThrottled(err) {
			t.Fatal(err)
		}
		start = time.Now()
		testkit.Must(c.Client.ListNLBListeners(t.Context(), []string{"nlb-none"}))(t)
		if waited := time.Since(start); waited > 2*time.Second {
			t.Errorf("a read waited %s for a window of a second", waited)
		}
	})
}

func TestNLBErrorClasses(t *testing.T) {
	t.Parallel()
	classes := map[string]func(error) bool{
		"busy": alicloud.IsBusy, "gone": alicloud.IsNotFound, "quota": alicloud.IsQuota, "duplicate": alicloud.IsDuplicate,
		"ambiguous": alicloud.IsAmbiguous,
		"forbidden": alicloud.IsForbidden, "bad server": alicloud.IsBadServer, "throttled": alicloud.IsThrottled,
	}
	for code, want := range map[string]string{
		"Conflict.Lock": "busy", "IncorrectStatus.loadBalancer": "busy", "IncorrectStatus.serverGroup": "busy",
		"ResourceInConfiguring.LoadBalancer": "busy",
		"OperationFailed.GetXipFailed":       "busy", "ResourceInUse.serverGroup": "busy", "SystemBusy": "busy",
		"ResourceNotFound.LoadBalancer": "gone", "ResourceNotFound.BackendServer": "gone", "ResourceNotFound.JobId": "gone",
		"QuotaExceeded.QuotaInsufficient": "quota", "DuplicatedParam.Server": "duplicate", "Conflict.Port": "duplicate",
		"Forbidden.NoPermission": "forbidden", "ResourceNotFound.Ecs": "bad server", "Throttling.Api": "throttled", "TagInvokeError": "ambiguous",
		"IllegalParam.IdleTimeout": "", "OperationDenied.ServiceLinkedRoleNotExist": "", "ResourceNotFound.Certificate": "",
	} {
		err := error(&alicloud.Error{Action: "CreateListener", Code: code, Status: http.StatusBadRequest, RequestID: "r"})
		for name, is := range classes {
			if is(err) != (name == want) {
				t.Errorf("%s: %s is %t", code, name, is(err))
			}
		}
	}
}
