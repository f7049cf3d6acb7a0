package emulator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	ecsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/ecs"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// change changes the emulator's settings.
func (a *account) change(f func(*emulator.Settings)) {
	a.t.Helper()
	testkit.Must(0, a.Change(f))(a.t)
}

// tagged counts the load balancers that a search by tag finds.
func (a *account) tagged(key string) int {
	a.t.Helper()
	r := slbapi.CreateDescribeLoadBalancersRequest()
	r.Tags = fmt.Sprintf(`[{"TagKey":%q}]`, key)
	return testkit.Must(a.slb.DescribeLoadBalancers(r))(a.t).TotalCount
}

func (a *account) tag(id, key string) {
	a.t.Helper()
	r := slbapi.CreateTagResourcesRequest()
	r.ResourceType, r.ResourceId, r.Tag = "instance", &[]string{id}, &[]slbapi.TagResourcesTag{{Key: key, Value: "1"}}
	testkit.Must(a.slb.TagResources(r))(a.t)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	for body, want := range map[string]int{
		`{"tagSearchLag":"30s","quotas":{"loadBalancers":3}}`: 204,
		`{"severalAcls":"odd"}`:                               400,
		`{"replicaLag":"-1s"}`:                                400,
		`{"replicaLag":"soon"}`:                               400,
		`{"tagSearchlagg":"1s"}`:                              400,
	} {
		status, answer := get(t, "PUT", a.url+"/_emulator/settings", body)
		wantEqual(t, body+" answered "+answer, status, want)
	}
	got := a.Settings()
	wantEqual(t, "changed", []any{time.Duration(got.TagSearchLag), got.Quotas.LoadBalancers}, []any{30 * time.Second, 3})
	wantEqual(t, "unchanged", []any{got.Quotas.ListenersPerLB, got.SeveralACLs}, []any{50, cloud.ACLIDEmpty})
	_, answer := get(t, "GET", a.url+"/_emulator/settings", "")
	if !strings.Contains(answer, `"tagSearchLag":"30s"`) {
		t.Errorf("settings %s", answer)
	}
}

func TestUnknownSwitchInConfig(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.SeveralACLs = "odd"
	if _, err := emulator.New(emulator.Options{Config: config}); err == nil {
		t.Error("a configuration with an unknown switch is accepted")
	}
}

func TestBackendOfAnotherVPC(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "NetworkConflict",
		"InvalidBackendServers.Inconsistent": "InvalidBackendServers.Inconsistent"} {
		config := cloud.DefaultConfig()
		config.VPCs = append(config.VPCs, cloud.VPCConfig{ID: "vpc-other", CIDR: "172.16.0.0/12"})
		config.RouteTables = append(config.RouteTables, cloud.RouteTableConfig{ID: "vtb-other", VPCID: "vpc-other"})
		config.VSwitches = append(config.VSwitches,
			cloud.VSwitchConfig{ID: "vsw-other", VPCID: "vpc-other", Zone: "cn-hangzhou-a", CIDR: "172.16.0.0/16"})
		config.OtherVPCCode = given
		a := newAccount(t, emulator.Options{Config: config})
		i := a.put("i-1", emulator.InstanceSpec{VSwitchID: "vsw-other"})
		group := a.newGroup(a.newLB(), "")
		wantCode(t, a.addBackends(group, `[{"ServerId":"i-1","Port":80}]`), want, 400)
		wantCode(t, a.addBackends(group, fmt.Sprintf(`[{"ServerId":%q,"Port":80,"Type":"eni"}]`, i.NetworkInterfaceID)), want, 400)
	}
}

func TestAttachedQuotaCode(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	a.change(func(s *emulator.Settings) { s.Quotas.LBsPerInstance = 1 })
	const backend = `[{"ServerId":"i-1","Port":80}]`
	a.newGroup(a.newLB(), backend)
	group := a.newGroup(a.newLB(), "")
	wantCode(t, a.addBackends(group, backend), "QuotaExceeded.AttachedLoadBalancers", 400)
	a.change(func(s *emulator.Settings) { s.AttachedQuotaCode = "BackendServer.OverQuota" })
	wantCode(t, a.addBackends(group, backend), "BackendServer.OverQuota", 400)
	a.change(func(s *emulator.Settings) { s.Quotas.LBsPerInstance = 2 })
	testkit.Must(0, a.addBackends(group, backend))(t)
}

func TestTagSearchLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{})
		id := a.newLB(func(r *slbapi.CreateLoadBalancerRequest) {
			r.Tag = &[]slbapi.CreateLoadBalancerTag{{Key: "first", Value: "1"}}
		})
		wantEqual(t, "without lag", a.tagged("first"), 1)
		a.change(func(s *emulator.Settings) { s.TagSearchLag = cloud.Duration(10 * time.Second) })
		wantEqual(t, "new load balancer", a.tagged("first"), 0)
		wantEqual(t, "its tags by id", len(a.describeLB(id).Tags.Tag), 1)
		time.Sleep(10 * time.Second)
		a.tag(id, "second")
		wantEqual(t, "new tag", []int{a.tagged("first"), a.tagged("second")}, []int{1, 0})
		untag := slbapi.CreateUntagResourcesRequest()
		untag.ResourceType, untag.ResourceId, untag.TagKey = "instance", &[]string{id}, &[]string{"first"}
		time.Sleep(5 * time.Second)
		testkit.Must(a.slb.UntagResources(untag))(t)
		time.Sleep(5 * time.Second)
		wantEqual(t, "removed tag", []int{a.tagged("first"), a.tagged("second")}, []int{1, 1})
		time.Sleep(5 * time.Second)
		wantEqual(t, "caught up", []int{a.tagged("first"), a.tagged("second")}, []int{0, 1})

		a.change(func(s *emulator.Settings) { s.TagSearchLag = 0 })
		a.tag(id, "third")
		a.fault(`{"action":"DescribeLoadBalancers","tagSearchLag":"1m"}`)
		wantEqual(t, "a fault is for one call", []int{a.tagged("third"), a.tagged("third")}, []int{0, 1})
	})
}

func TestTagsRemovedByHand(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	id := a.newLB()
	a.tag(id, "k")
	before := len(a.Calls(0))
	status, _ := get(t, "PUT", a.url+"/_emulator/loadbalancers/"+id, `{"Tags":[{"TagKey":"other","TagValue":"1"}]}`)
	wantEqual(t, "status", status, 204)
	wantEqual(t, "no call of the API", len(a.Calls(0)), before)
	wantEqual(t, "tags", a.describeLB(id).Tags.Tag, []slbapi.Tag{{TagKey: "other", TagValue: "1"}})
	wantEqual(t, "known", []bool{a.SetLoadBalancerTags(id, nil), a.SetLoadBalancerTags("lb-none", nil)}, []bool{true, false})
	wantEqual(t, "none left", len(a.describeLB(id).Tags.Tag), 0)
}

func TestReplicaLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{})
		a.change(func(s *emulator.Settings) { s.ReplicaLag = cloud.Duration(5 * time.Second) })
		lb := a.newLB()
		group := a.newGroup(lb, "") // writes see what was written
		a.newTCP(lb, group, 80)
		notFound := func(what, action, code string, status int, params map[string]string) {
			t.Helper()
			_, err := a.call("slb", action, params)
			t.Log(what)
			wantCode(t, err, code, status)
		}
		byID := map[string]string{"LoadBalancerId": lb, "ListenerPort": "80", "VServerGroupId": group}
		notFound("load balancer", "DescribeLoadBalancerAttribute", "InvalidLoadBalancerId.NotFound", 404, byID)
		notFound("group", "DescribeVServerGroupAttribute", "InvalidParameter", 404, byID)
		wantEqual(t, "list", testkit.Must(a.slb.DescribeLoadBalancers(slbapi.CreateDescribeLoadBalancersRequest()))(t).TotalCount, 0)
		time.Sleep(5 * time.Second)
		wantEqual(t, "caught up", a.describeLB(lb).LoadBalancerId, lb)

		a.change(func(s *emulator.Settings) { s.ReplicaLag = 0 })
		lb = a.newLB()
		wantEqual(t, "without lag", a.describeLB(lb).LoadBalancerId, lb)
		a.fault(`{"action":"*","replicaLag":"1m","times":1}`)
		notFound("fault", "CreateVServerGroup", "InvalidLoadBalancerId.NotFound", 404, map[string]string{"LoadBalancerId": lb})
	})
}

func TestSeveralACLs(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.ACLs = []cloud.ACLConfig{{ID: "acl-1"}, {ID: "acl-2"}}
	a := newAccount(t, emulator.Options{Config: config})
	lb := a.newLB()
	set := slbapi.CreateSetLoadBalancerTCPListenerAttributeRequest()
	a.newTCP(lb, a.newGroup(lb, ""), 80)
	show := func(ids string) string {
		set.LoadBalancerId, set.ListenerPort, set.AclStatus, set.AclType, set.AclId = lb, requests.NewInteger(80), "on", "white", ids
		testkit.Must(a.slb.SetLoadBalancerTCPListenerAttribute(set))(t)
		get := slbapi.CreateDescribeLoadBalancerTCPListenerAttributeRequest()
		get.LoadBalancerId, get.ListenerPort = lb, requests.NewInteger(80)
		one, listed := testkit.Must(a.slb.DescribeLoadBalancerTCPListenerAttribute(get))(t), a.listeners(lb)[0]
		wantEqual(t, "list as the single answer", []any{listed.AclId, listed.AclIds}, []any{one.AclId, one.AclIds.AclId})
		return one.AclId + " of " + strings.Join(listed.AclIds, " ")
	}
	for mode, want := range map[cloud.SeveralACLs]string{
		cloud.ACLIDEmpty: " of acl-1 acl-2", cloud.ACLIDFirst: "acl-1 of acl-1 acl-2", cloud.ACLIDJoined: "acl-1,acl-2 of acl-1 acl-2",
	} {
		a.change(func(s *emulator.Settings) { s.SeveralACLs = mode })
		wantEqual(t, "several, "+string(mode), show("acl-1,acl-2"), want)
		wantEqual(t, "one, "+string(mode), show("acl-2"), "acl-2 of acl-2")
	}
}

func TestAnswerWithAnotherBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `{}`, `null`, `<html>`} {
		a := newAccount(t, emulator.Options{})
		create := func(what, fault string, answer string, made int) {
			t.Helper()
			a.fault(fault)
			got, err := a.call("slb", "CreateLoadBalancer", map[string]string{"AddressType": "internet"})
			wantEqual(t, what, []any{got, err}, []any{answer, nil})
			list := slbapi.CreateDescribeLoadBalancersRequest()
			wantEqual(t, what+": load balancers", testkit.Must(a.slb.DescribeLoadBalancers(list))(t).TotalCount, made)
		}
		create("carried out", fmt.Sprintf(`{"action":"CreateLoadBalancer","body":%q}`, body), body, 1)
		create("not carried out", fmt.Sprintf(`{"action":"CreateLoadBalancer","body":%q,"drop":"before"}`, body), body, 1)
		call := a.Calls(0)[2]
		wantEqual(t, "journal", []any{call.Action, call.Status, call.Code, call.Dropped}, []any{"CreateLoadBalancer", 200, "", ""})
		a.fault(fmt.Sprintf(`{"action":"DescribeRegions","body":%q,"code":"Odd","status":502}`, body))
		if _, err := a.call("slb", "DescribeRegions", nil); err == nil {
			t.Error("the status of an error is lost with its body")
		}
	}
}

func TestLoadBalancerAddresses(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Config: withIPv6(func(*emulator.Config) {})})
	create := func(addressType, version, vSwitch string) (string, error) {
		r := slbapi.CreateCreateLoadBalancerRequest()
		r.AddressType, r.AddressIPVersion, r.VSwitchId = addressType, version, vSwitch
		answer, err := a.slb.CreateLoadBalancer(r)
		return answer.Address, err
	}
	var got []string
	for _, c := range [][3]string{
		{"intranet", "ipv4", "vsw-a"}, {"intranet", "ipv6", "vsw-a"}, {"intranet", "ipv6", "vsw-a"}, {"internet", "ipv4", ""},
		{"internet", "ipv6", ""},
	} {
		got = append(got, testkit.Must(create(c[0], c[1], c[2]))(t))
	}
	wantEqual(t, "addresses", got,
		[]string{"10.1.0.1", "2408:4005:300:ab01::1:0", "2408:4005:300:ab01::1:1", "198.18.0.1", "2001:db8:ffff::1:2"})
	_, err := create("intranet", "ipv6", "vsw-b")
	wantCode(t, err, "InvalidParameter", 400)
}

func TestIntranetIsChargedByTraffic(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	r := slbapi.CreateCreateLoadBalancerRequest()
	r.AddressType, r.VSwitchId, r.InternetChargeType = "intranet", "vsw-a", "paybybandwidth"
	_, err := a.slb.CreateLoadBalancer(r)
	wantCode(t, err, "InvalidParameter", 400)
	r.InternetChargeType = "paybytraffic"
	testkit.Must(a.slb.CreateLoadBalancer(r))(t)
}

func TestCipherPolicies(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}}
	a := newAccount(t, emulator.Options{Config: config})
	lb := a.newLB()
	r := slbapi.CreateCreateLoadBalancerHTTPSListenerRequest()
	r.LoadBalancerId, r.ListenerPort, r.VServerGroupId, r.ServerCertificateId = lb, requests.NewInteger(443), a.newGroup(lb, ""), "cert-1"
	r.TLSCipherPolicy = "tls_cipher_policy_1_3"
	_, err := a.slb.CreateLoadBalancerHTTPSListener(r)
	wantCode(t, err, "InvalidParameter", 400)
	for i, policy := range []string{"tls_cipher_policy_1_2_strict_with_1_3", "tls-own"} {
		r.TLSCipherPolicy, r.ListenerPort = policy, requests.NewInteger(443+i)
		testkit.Must(a.slb.CreateLoadBalancerHTTPSListener(r))(t)
	}
}

func TestRoleOfAnInstanceExists(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	r := ecsapi.CreateRunInstancesRequest()
	r.ImageId, r.InstanceType, r.VSwitchId, r.SecurityGroupId, r.RamRoleName = "image", "ecs.g7.large", "vsw-a", "sg", "none"
	_, err := a.ecs.RunInstances(r)
	wantCode(t, err, "InvalidRamRole.NotFound", 404)
	r.RamRoleName = "emulator-role"
	testkit.Must(a.ecs.RunInstances(r))(t)
	for id, status := range map[string]int{"i-new": 400, testkit.Must(a.ecs.RunInstances(r))(t).InstanceIdSets.InstanceIdSet[0]: 400} {
		got, _ := get(t, "PUT", a.url+"/_emulator/instances/"+id, `{"RamRoleName":"none"}`)
		wantEqual(t, id, got, status)
	}
}
