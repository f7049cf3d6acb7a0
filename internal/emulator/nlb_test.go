package emulator_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// twoZones are the zones of the default configuration.
var twoZones = in{"ZoneMappings.1.ZoneId": "cn-hangzhou-a", "ZoneMappings.1.VSwitchId": "vsw-a", "ZoneMappings.2.ZoneId": "cn-hangzhou-b",
	"ZoneMappings.2.VSwitchId": "vsw-b"}

// TestNLBLife: an instance is provisioned, active, changed by jobs, protected, and deleted, each with the states in between.
func TestNLBLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: time.Second})
		id := a.newNLB(in{"DeletionProtectionConfig.Enabled": "true", "Tag.1.Key": "owner", "Tag.1.Value": "test", "ClientToken": "one"})
		wantEqual(t, "a repeated token",
			a.newNLB(in{"DeletionProtectionConfig.Enabled": "true", "Tag.1.Key": "owner", "Tag.1.Value": "test", "ClientToken": "one"}), id)
		a.refused("CreateLoadBalancer", newNLB.with(in{"ClientToken": "one"}), "IdempotenceSignatureMismatch", 400)
		wantEqual(t, "status", text(t, a.nlb(id), "LoadBalancerStatus"), "Provisioning")
		a.refused("UpdateLoadBalancerAttribute", in{"LoadBalancerId": id, "Cps": "10"}, "IncorrectStatus.loadbalancer", 400)
		time.Sleep(20 * time.Second)
		lb := a.nlb(id)
		wantEqual(t, "status", text(t, lb, "LoadBalancerStatus"), "Active")
		wantEqual(t, "name in DNS", text(t, lb, "DNSName"), id+".cn-hangzhou.nlb.aliyuncsslb.com")
		wantEqual(t, "tag", text(t, lb, "Tags", 0, "TagKey"), "owner")

		job := text(t, a.nlbCall("UpdateLoadBalancerAttribute", in{"LoadBalancerId": id, "Cps": "10", "CrossZoneEnabled": "false"}), "JobId")
		wantEqual(t, "job", a.jobState(job), "Processing")
		a.refused("UpdateLoadBalancerAttribute", in{"LoadBalancerId": id, "Cps": "11"}, "Conflict.Lock", 400)
		time.Sleep(time.Second)
		jobs := a.nlbCall("ListAsynJobs", in{"JobIds.1": job})
		wantEqual(t, "jobs", []string{text(t, jobs, "Jobs", 0, "Status"), text(t, jobs, "TotalCount")}, []string{"Succeeded", "1"})
		a.refused("ListAsynJobs", in{"JobIds.1": "none"}, "ResourceNotFound.JobId", 404)

		a.refused("DeleteLoadBalancer", in{"LoadBalancerId": id}, "OperationDenied.DeletionProtectionEnabled", 400)
		a.nlbCall("UpdateLoadBalancerProtection", in{"LoadBalancerId": id, "DeletionProtectionEnabled": "false"})
		a.refused("DeleteLoadBalancer", in{"LoadBalancerId": id, "DryRun": "true"}, "DryRunOperation", 400)
		a.nlbCall("DeleteLoadBalancer", in{"LoadBalancerId": id})
		wantEqual(t, "status", text(t, a.nlb(id), "LoadBalancerStatus"), "Deleting")
		time.Sleep(10 * time.Second)
		a.refused("GetLoadBalancerAttribute", in{"LoadBalancerId": id}, "ResourceNotFound.loadBalancer", 404)
	})
}

// TestNLBJobsThatFail: a failed job has no effect, one that hangs keeps its object busy.
func TestNLBJobsThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: time.Second})
		a.put("i-1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
		group := a.newNLBGroup(nil)
		time.Sleep(time.Second)
		servers := in{"ServerGroupId": group, "Servers.1.ServerId": "i-1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "80"}
		state := func() (count, status string) {
			g := a.nlbCall("ListServerGroups", in{"ServerGroupIds.1": group})
			return text(t, g, "ServerGroups", 0, "ServerCount"), text(t, g, "ServerGroups", 0, "ServerGroupStatus")
		}

		a.fault(`{"product":"nlb","action":"AddServersToServerGroup","job":"failed"}`)
		job := text(t, a.nlbCall("AddServersToServerGroup", servers), "JobId")
		time.Sleep(2 * time.Second)
		count, status := state()
		wantEqual(t, "after a failed job", []string{a.jobState(job), count, status}, []string{"Failed", "0", "Available"})

		a.fault(`{"product":"nlb","action":"AddServersToServerGroup","job":"stuck"}`)
		job = text(t, a.nlbCall("AddServersToServerGroup", servers), "JobId")
		time.Sleep(time.Minute)
		count, status = state()
		wantEqual(t, "while a job hangs", []string{a.jobState(job), count, status}, []string{"Processing", "1", "Configuring"})
		a.refused("DeleteServerGroup", in{"ServerGroupId": group}, "IncorrectStatus.serverGroup", 400)

		a.fault(`{"product":"nlb","action":"CreateLoadBalancer","job":"failed"}`)
		lb := a.newNLB(nil)
		time.Sleep(time.Minute)
		wantEqual(t, "an instance that could not be made", text(t, a.nlb(lb), "LoadBalancerStatus"), "CreateFailed")
	})
}

// TestNLBNetwork: zones, addresses, security groups and bandwidth packages of an instance.
func TestNLBNetwork(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	for _, test := range []struct {
		name, code string
		status     int
		more       in
	}{
		{"a zone twice", "OperationFailed.DuplicateZones.", 400,
			in{"ZoneMappings.2.ZoneId": "cn-hangzhou-a", "ZoneMappings.2.VSwitchId": "vsw-a"}},
		{"a vSwitch of another zone", "Mismatch.ZoneIdAndVswitchId", 400, in{"ZoneMappings.2.VSwitchId": "vsw-a"}},
		{"no such vSwitch", "ResourceNotFound.VSwitch", 404, in{"ZoneMappings.2.VSwitchId": "vsw-none"}},
		{"no such VPC", "ResourceNotFound.Vpc", 404, in{"VpcId": "vpc-none"}},
		{"no such security group", "ResourceNotFound.SecurityGroup", 404, in{"SecurityGroupIds.1": "sg-none"}},
		{"an address outside the vSwitch", "IllegalParam.PrivateIPv4Address", 400, in{"ZoneMappings.1.PrivateIPv4Address": "10.9.0.1"}},
		{"IPv6 without a range", "OperationFailed.vSwitchNotSupportIpv6", 400, in{"AddressIpVersion": "DualStack"}},
		{"an elastic address inside", "IllegalParam.AllocationId", 400, in{"ZoneMappings.1.AllocationId": "eip-1"}},
	} {
		_, err := a.call("nlb", "CreateLoadBalancer", newNLB.with(test.more))
		t.Log(test.name)
		wantCode(t, err, test.code, test.status)
	}
	eip := text(t, a.product("vpc", "AllocateEipAddress", in{"InternetChargeType": "PayByTraffic"}), "AllocationId")
	id := a.newNLB(in{"ZoneMappings.1.PrivateIPv4Address": "10.1.0.77"})
	a.nlbCall("UpdateLoadBalancerAddressTypeConfig",
		twoZones.with(in{"LoadBalancerId": id, "AddressType": "Internet", "ZoneMappings.1.AllocationId": eip}))
	lb := a.nlb(id)
	wantEqual(t, "addresses", []string{
		text(t, lb, "AddressType"), text(t, lb, "ZoneMappings", 0, "LoadBalancerAddresses", 0, "AllocationId"),
		text(t, lb, "ZoneMappings", 0, "LoadBalancerAddresses", 0, "PrivateIPv4Address"),
	}, []string{"Internet", eip, "10.1.0.77"})
	a.refused("UpdateLoadBalancerAddressTypeConfig", in{"LoadBalancerId": id, "AddressType": "Internet"},
		"OperationDenied.AddressTypeNotChanged", 400)
	a.nlbCall("AttachCommonBandwidthPackageToLoadBalancer", in{"LoadBalancerId": id, "BandwidthPackageId": "cbwp-1"})
	a.nlbCall("DetachCommonBandwidthPackageFromLoadBalancer", in{"LoadBalancerId": id, "BandwidthPackageId": "cbwp-1"})
	a.refused("EnableLoadBalancerIpv6Internet", in{"LoadBalancerId": id}, "OperationDenied.NonDualStackInstance", 400)

	a.refused("UpdateLoadBalancerZones",
		in{"LoadBalancerId": id, "ZoneMappings.1.ZoneId": "cn-hangzhou-a", "ZoneMappings.1.VSwitchId": "vsw-a"}, "InvalidZones", 400)
	a.refused("UpdateLoadBalancerZones", twoZones.with(in{"LoadBalancerId": id, "ZoneMappings.1.PrivateIPv4Address": "10.1.0.78"}),
		"OperationDenied.ProtectedPrivateIPv4AddressChanged", 400)
	a.nlbCall("UpdateLoadBalancerZones", twoZones.with(in{"LoadBalancerId": id}))

	basic := text(t, a.product("ecs", "CreateSecurityGroup", in{"VpcId": "vpc-emulator"}), "SecurityGroupId")
	advanced := text(t, a.product("ecs", "CreateSecurityGroup", in{"VpcId": "vpc-emulator", "SecurityGroupType": "enterprise"}),
		"SecurityGroupId")
	a.nlbCall("LoadBalancerJoinSecurityGroup", in{"LoadBalancerId": id, "SecurityGroupIds.1": basic})
	a.refused("LoadBalancerJoinSecurityGroup", in{"LoadBalancerId": id, "SecurityGroupIds.1": advanced}, "Conflict.SecurityGroup", 400)
	_, err := a.call("ecs", "DeleteSecurityGroup", in{"SecurityGroupId": basic})
	wantCode(t, err, "DependencyViolation", 403)
	a.nlbCall("LoadBalancerLeaveSecurityGroup", in{"LoadBalancerId": id, "SecurityGroupIds.1": basic})
	a.product("ecs", "DeleteSecurityGroup", in{"SecurityGroupId": basic})
	wantEqual(t, "zones", text(t, a.nlbCall("DescribeZones", nil), "Zones", 1, "ZoneId"), "cn-hangzhou-b")
	wantEqual(t, "regions", text(t, a.nlbCall("DescribeRegions", nil), "Regions", 0, "RegionId"), region)
}

// TestNLBDualStack: IPv6 is inside the VPC until it is made public.
func TestNLBDualStack(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Config: dualStackConfig()})
	id := a.newNLB(in{"AddressIpVersion": "DualStack"})
	kind := func() string { return text(t, a.nlb(id), "Ipv6AddressType") }
	wantEqual(t, "at first", kind(), "Intranet")
	a.nlbCall("EnableLoadBalancerIpv6Internet", in{"LoadBalancerId": id})
	wantEqual(t, "public", kind(), "Internet")
	a.nlbCall("DisableLoadBalancerIpv6Internet", in{"LoadBalancerId": id})
	wantEqual(t, "no longer", kind(), "Intranet")
}

// TestNLBListeners: ports and ranges, what a protocol needs, and the life of a listener.
func TestNLBListeners(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}, {ID: "cert-2"}, {ID: "ca-1", CA: true}}
	a := newAccount(t, emulator.Options{Config: config})
	lb, group := a.newNLB(nil), a.newNLBGroup(nil)
	secure := a.newNLBGroup(in{"Protocol": "TCPSSL"})
	datagrams := a.newNLBGroup(in{"Protocol": "UDP", "HealthCheckConfig.HealthCheckEnabled": "false"})
	ranged := a.newNLBGroup(in{"AnyPortEnabled": "true", "HealthCheckConfig.HealthCheckConnectPort": "80"})
	first := a.newNLBListener(lb, group, 80, nil)
	a.newNLBListener(lb, datagrams, 80, in{"ListenerProtocol": "UDP", "IdleTimeout": "15"})
	a.newNLBListener(lb, ranged, 0, in{"StartPort": "8000", "EndPort": "8100"})

	listener := in{"LoadBalancerId": lb, "ServerGroupId": group, "ListenerPort": "443", "ListenerProtocol": "TCP"}
	for _, test := range []struct {
		name, code string
		status     int
		more       in
	}{
		{"the same again", "DuplicatedParam.listener", 400, in{"ListenerPort": "80"}},
		{"TLS beside TCP", "Conflict.Port", 400,
			in{"ListenerPort": "80", "ListenerProtocol": "TCPSSL", "ServerGroupId": secure, "CertificateIds.1": "cert-1"}},
		{"inside a range", "Conflict.Port", 400, in{"ListenerPort": "8050"}},
		{"no certificate", "MissingParam.Certificate", 400, in{"ListenerProtocol": "TCPSSL", "ServerGroupId": secure}},
		{"two certificates", "IllegalParamSize.certificateIds", 400,
			in{"ListenerProtocol": "TCPSSL", "ServerGroupId": secure, "CertificateIds.1": "cert-1", "CertificateIds.2": "cert-2"}},
		{"no such certificate", "ResourceNotFound.Certificate", 404,
			in{"ListenerProtocol": "TCPSSL", "ServerGroupId": secure, "CertificateIds.1": "none"}},
		{"a group that keeps addresses", "IllegalParam.PreserveClientIpSwitch", 400,
			in{"ListenerProtocol": "TCPSSL", "CertificateIds.1": "cert-1"}},
		{"no such policy", "ResourceNotFound.securitypolicy", 404,
			in{"ListenerProtocol": "TCPSSL", "ServerGroupId": secure, "CertificateIds.1": "cert-1", "SecurityPolicyId": "none"}},
		{"UDP for long", "IllegalParam.IdleTimeout", 400, in{"ListenerProtocol": "UDP", "ServerGroupId": datagrams, "IdleTimeout": "900"}},
		{"a group of UDP", "Mismatch.Protocol", 400, in{"ServerGroupId": datagrams}},
		{"a group for any port", "IllegalParam.NonAnyPortListenerConflictWithAnyPortServerGroup", 400, in{"ServerGroupId": ranged}},
		{"a range of TLS", "IllegalParam.Port", 400,
			in{"ListenerPort": "0", "StartPort": "1", "EndPort": "9", "ListenerProtocol": "TCPSSL", "CertificateIds.1": "cert-1"}},
		{"no group", "ResourceNotFound.serverGroup", 404, in{"ServerGroupId": "none"}},
	} {
		t.Log(test.name)
		a.refused("CreateListener", listener.with(test.more), test.code, test.status)
	}
	https := a.newNLBListener(lb, secure, 443,
		in{"ListenerProtocol": "TCPSSL", "CertificateIds.1": "cert-1", "CaEnabled": "true", "CaCertificateIds.1": "ca-1", "AlpnEnabled": "true",
			"AlpnPolicy": "HTTP2Only"})
	a.nlbCall("AssociateAdditionalCertificatesWithListener", in{"ListenerId": https, "AdditionalCertificateIds.1": "cert-2"})
	wantEqual(t, "certificates", text(t, a.nlbCall("ListListenerCertificates", in{"ListenerId": https}), "Certificates", 1, "CertificateId"),
		"cert-2")
	a.nlbCall("DisassociateAdditionalCertificatesWithListener", in{"ListenerId": https, "AdditionalCertificateIds.1": "cert-2"})
	a.nlbCall("UpdateListenerAttribute",
		in{"ListenerId": https, "ProxyProtocolEnabled": "true", "ProxyProtocolV2Config": `{"Ppv2VpcIdEnabled":true}`, "Cps": "5"})
	got := a.nlbCall("GetListenerAttribute", in{"ListenerId": https})
	wantEqual(t, "attributes",
		[]string{text(t, got, "Cps"), text(t, got, "ProxyProtocolV2Config", "Ppv2VpcIdEnabled"), text(t, got, "SecurityPolicyId")},
		[]string{"5", "true", "tls_cipher_policy_1_0"})

	a.nlbCall("StopListener", in{"ListenerId": first})
	a.refused("StopListener", in{"ListenerId": first}, "IncorrectStatus.listener", 400)
	a.nlbCall("StartListener", in{"ListenerId": first})
	page := a.nlbCall("ListListeners", in{"LoadBalancerIds.1": lb, "MaxResults": "3"})
	rest := a.nlbCall("ListListeners", in{"LoadBalancerIds.1": lb, "MaxResults": "3", "NextToken": text(t, page, "NextToken")})
	wantEqual(t, "pages",
		[]string{text(t, page, "TotalCount"), text(t, page, "Listeners", 2, "StartPort"), text(t, rest, "Listeners", 0, "ListenerId")},
		[]string{"4", "8000", https})
	wantEqual(t, "health",
		text(t, a.nlbCall("GetListenerHealthStatus", in{"ListenerId": first}), "ListenerHealthStatus", 0, "ServerGroupInfos", 0,
			"HeathCheckEnabled"), "true")
	a.refused("DeleteServerGroup", in{"ServerGroupId": group}, "ResourceInUse.ServerGroup", 400)
	a.nlbCall("DeleteListener", in{"ListenerId": first})
	a.nlbCall("DeleteServerGroup", in{"ServerGroupId": group})
}

// TestNLBServers: which servers a group takes, and that calls do all or nothing.
func TestNLBServers(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Config: &emulator.Config{
		Region: region, VPCs: cloud.DefaultConfig().VPCs, VSwitches: cloud.DefaultConfig().VSwitches,
		RouteTables: cloud.DefaultConfig().RouteTables,
		AccessKeys:  cloud.DefaultConfig().AccessKeys, Quotas: cloud.Limits{ServersPerNLBGroup: 3},
	}})
	one := a.put("i-1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
	a.put("i-2", emulator.InstanceSpec{VSwitchID: "vsw-b"})
	group, ips := a.newNLBGroup(nil), a.newNLBGroup(in{"ServerGroupType": "Ip", "ServerGroupName": "ips"})
	server := func(id, kind, port string) in {
		return in{"ServerGroupId": group, "Servers.1.ServerId": id, "Servers.1.ServerType": kind, "Servers.1.Port": port,
			"Servers.1.Description": "ours"}
	}
	for _, test := range []struct {
		name, code string
		status     int
		params     in
	}{
		{"no such instance", "ResourceNotFound.Ecs", 404, server("i-none", "Ecs", "80")},
		{"no such interface", "ResourceNotFound.Eni", 404, server("eni-none", "Eni", "80").with(in{"Servers.1.ServerIp": "10.1.0.9"})},
		{"an interface without address", "MissingParam.IP", 400, server("eni-none", "Eni", "80")},
		{"no such container", "ResourceNotFound.Eci", 404, server("eci-none", "Eci", "80").with(in{"Servers.1.ServerIp": "10.1.0.9"})},
		{"an address among instances", "Mismatch.ServerType", 400, server("10.1.0.9", "Ip", "80")},
		{"no port", "IllegalParam.RSPortConflictWithServerGroup", 400, server("i-1", "Ecs", "0")},
		{"twice in a call", "DuplicatedParam.Server", 400,
			server("i-1", "Ecs", "80").with(in{"Servers.2.ServerId": "i-1", "Servers.2.ServerType": "Ecs", "Servers.2.Port": "80"})},
		{"a public address", "IllegalParam.IP", 400, server("8.8.8.8", "Ip", "80").with(in{"ServerGroupId": ips})},
	} {
		t.Log(test.name)
		a.refused("AddServersToServerGroup", test.params, test.code, test.status)
	}
	a.nlbCall("AddServersToServerGroup", server("i-1", "Ecs", "80"))
	a.nlbCall("AddServersToServerGroup", server("i-1", "Ecs", "81"))
	a.nlbCall("AddServersToServerGroup", server("10.1.0.200", "Ip", "80").with(in{"ServerGroupId": ips}))
	a.refused("AddServersToServerGroup", server("i-1", "Ecs", "80"), "DuplicatedParam.Server", 400)
	a.refused("AddServersToServerGroup",
		server("i-2", "Ecs", "80").with(in{"Servers.2.ServerId": "i-2", "Servers.2.ServerType": "Ecs", "Servers.2.Port": "81"}),
		"QuotaExceeded.QuotaInsufficient", 400)
	a.nlbCall("UpdateServerGroupServersAttribute", server("i-1", "Ecs", "80").with(in{"Servers.1.Weight": "7"}))
	a.refused("UpdateServerGroupServersAttribute", server("i-1", "Ecs", "82"), "ResourceNotFound.BackendServer", 404)
	list := a.nlbCall("ListServerGroupServers", in{"ServerGroupId": group})
	wantEqual(t, "servers",
		[]string{text(t, list, "Servers", 0, "Weight"), text(t, list, "Servers", 0, "ServerIp"), text(t, list, "Servers", 0, "ZoneId"),
			text(t, list, "Servers", 1, "Port")},
		[]string{"7", one.PrivateIP, "cn-hangzhou-a", "81"})
	a.refused("RemoveServersFromServerGroup",
		server("i-1", "Ecs", "80").with(in{"Servers.2.ServerId": "i-2", "Servers.2.ServerType": "Ecs", "Servers.2.Port": "80"}),
		"ResourceNotFound.BackendServer", 404)
	wantEqual(t, "after a refused call", text(t, a.nlbCall("ListServerGroupServers", in{"ServerGroupId": group}), "TotalCount"), "2")
	a.nlbCall("RemoveServersFromServerGroup", server("i-1", "Ecs", "80"))
	wantEqual(t, "after it", text(t, a.nlbCall("ListServerGroupServers", in{"ServerGroupId": group}), "TotalCount"), "1")
}

// TestNLBGroups: the settings of a group, and the rules between them.
func TestNLBGroups(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	id := a.newNLBGroup(in{"Tag.1.Key": "cluster", "Tag.1.Value": "c"})
	a.nlbCall("UpdateServerGroupAttribute", in{
		"ServerGroupId": id, "Scheduler": "tch", "ConnectionDrainEnabled": "true", "ConnectionDrainTimeout": "30",
		"HealthCheckConfig.HealthCheckEnabled":    "false",
		"HealthCheckConfig.HealthCheckHttpCode.1": "http_2xx",
	})
	got := at(t, a.nlbCall("ListServerGroups", in{"Tag.1.Key": "cluster", "Tag.1.Value": "c"}), "ServerGroups", 0)
	wantEqual(t, "settings", []string{
		text(t, got, "ServerGroupId"), text(t, got, "Scheduler"), text(t, got, "ConnectionDrainTimeout"),
		text(t, got, "HealthCheck", "HealthCheckEnabled"),
		text(t, got, "PreserveClientIpEnabled"), text(t, got, "HealthCheck", "HealthCheckHttpCode", 0),
	}, []string{id, "tch", "30", "false", "true", "http_2xx"})
	for _, test := range []struct {
		name, code string
		more       in
	}{
		{"a long name", "IllegalParam.ServerGroupName", in{"ServerGroupName": fmt.Sprintf("%0129d", 0)}},
		{"a scheduler of QUIC", "IllegalParam.Scheduler", in{"Scheduler": "qch"}},
		{"UDP checks of TCP", "IllegalParam.healthCheckType", in{"HealthCheckConfig.HealthCheckType": "UDP"}},
		{"addresses and TLS", "IllegalParam.PreserveClientIpSwitch", in{"Protocol": "TCPSSL", "PreserveClientIpEnabled": "true"}},
		{"any port, checked nowhere", "IllegalParam.AnyPortServerGroupConflictWithHealthCheckConfig", in{"AnyPortEnabled": "true"}},
		{"rare checks of TCP", "IllegalParam.healthCheckInterval", in{"HealthCheckConfig.HealthCheckInterval": "51"}},
		{"impatient checks of UDP", "IllegalParam.healthCheckInterval", in{
			"Protocol": "UDP", "HealthCheckConfig.HealthCheckType": "UDP", "HealthCheckConfig.HealthCheckInterval": "5",
			"HealthCheckConfig.HealthCheckConnectTimeout": "12",
		}},
	} {
		t.Log(test.name)
		a.refused("CreateServerGroup", in{"ServerGroupName": "group", "VpcId": "vpc-emulator"}.with(test.more), test.code, 400)
	}
}

// TestNLBTags: tags of an instance, a listener and a group; a search for instances by several tags finds those with one of them.
func TestNLBTags(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	one, two := a.newNLB(in{"Tag.1.Key": "a"}), a.newNLB(in{"Tag.1.Key": "b"})
	found := a.nlbCall("ListLoadBalancers", in{"Tag.1.Key": "a", "Tag.2.Key": "b"})
	wantEqual(t, "either tag",
		[]string{text(t, found, "LoadBalancers", 0, "LoadBalancerId"), text(t, found, "LoadBalancers", 1, "LoadBalancerId")}, []string{one, two})
	group := a.newNLBGroup(nil)
	for kind, id := range map[string]string{"loadbalancer": one, "servergroup": group, "listener": a.newNLBListener(one, group, 80, nil)} {
		resource := in{"ResourceType": kind, "ResourceId.1": id}
		a.nlbCall("TagResources", resource.with(in{"Tag.1.Key": "team", "Tag.1.Value": "x"}))
		wantEqual(t, kind, text(t, a.nlbCall("ListTagResources", in{"ResourceType": kind, "Tag.1.Key": "team"}), "TagResources", 0, "ResourceId"),
			id)
		a.nlbCall("UntagResources", resource.with(in{"TagKey.1": "team"}))
		wantEqual(t, kind, text(t, a.nlbCall("ListTagResources", in{"ResourceType": kind, "Tag.1.Key": "team"}), "TotalCount"), "0")
	}
}

// TestNLBSwitches: each fact that no document settles, both ways.
func TestNLBSwitches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}}
		config.NLBReadsFailAtFirst, config.NLBGroupsRefuseTCPSSL, config.NLBGroupTagsAny, config.NLBRangesOverTLS = true, true, true, true
		a := newBubble(t, emulator.Options{Settle: time.Second, Config: config})
		lb := a.newNLB(nil)
		a.refused("GetLoadBalancerAttribute", in{"LoadBalancerId": lb}, "OperationFailed.GetXipFailed", 400)
		a.refused("CreateServerGroup", in{"ServerGroupName": "group", "VpcId": "vpc-emulator", "Protocol": "TCPSSL"}, "IllegalParam.Protocol",
			400)
		a.newNLBGroup(in{"Tag.1.Key": "a"})
		wantEqual(t, "either tag", text(t, a.nlbCall("ListServerGroups", in{"Tag.1.Key": "a", "Tag.2.Key": "b"}), "TotalCount"), "1")
		ranged := a.newNLBGroup(in{"AnyPortEnabled": "true", "HealthCheckConfig.HealthCheckConnectPort": "80",
			"PreserveClientIpEnabled": "false"})
		time.Sleep(20 * time.Second)
		a.newNLBListener(lb, ranged, 0, in{"StartPort": "1", "EndPort": "9", "ListenerProtocol": "TCPSSL", "CertificateIds.1": "cert-1"})
	})
}

// TestNLBHealthOfUDP: whether backend servers of UDP pass a check depends on its type, unless they answer both.
func TestNLBHealthOfUDP(t *testing.T) {
	t.Parallel()
	const check = "HealthCheckConfig.HealthCheck"
	for _, test := range []struct {
		name    string
		group   in
		answers bool
		want    int
	}{
		{"by TCP, the default", in{"Protocol": "UDP"}, false, 1},
		{"by HTTP", in{"Protocol": "UDP", check + "Type": "HTTP"}, false, 1},
		{"by UDP", in{"Protocol": "UDP", check + "Type": "UDP"}, false, 0},
		{"by TCP on a port of its own", in{"Protocol": "UDP", check + "ConnectPort": "81"}, false, 0},
		{"by TCP, which is answered", in{"Protocol": "UDP"}, true, 0},
		{"TCP by TCP", nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := cloud.DefaultConfig()
				config.NLBUDPServersAnswerTCP = test.answers
				a := newBubble(t, emulator.Options{Settle: time.Second, Config: config})
				lb, group := a.newNLB(nil), a.newNLBGroup(test.group)
				time.Sleep(30 * time.Second)
				a.put("i-1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
				a.nlbCall("AddServersToServerGroup", in{"ServerGroupId": group, "Servers.1.ServerId": "i-1", "Servers.1.ServerType": "Ecs",
					"Servers.1.Port": "53"})
				listener := a.newNLBListener(lb, group, 53, in{"ListenerProtocol": cmp.Or(test.group["Protocol"], "TCP")})
				time.Sleep(5 * time.Second)
				bad := at(t, a.nlbCall("GetListenerHealthStatus", in{"ListenerId": listener}), "ListenerHealthStatus", 0, "ServerGroupInfos", 0,
					"NonNormalServers").([]any)
				wantEqual(t, "servers that fail", len(bad), test.want)
			})
		})
	}
}

// TestSecurityGroups: rules of both IP versions, which are neither repeated nor missed.
func TestSecurityGroups(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	id := text(t,
		a.product("ecs", "CreateSecurityGroup",
			in{"VpcId": "vpc-emulator", "SecurityGroupType": "enterprise", "SecurityGroupName": "sources", "Tag.1.Key": "owner"}), "SecurityGroupId")
	rules := in{"SecurityGroupId": id}
	for n, source := range []string{"SourceCidrIp=192.0.2.0/24", "Ipv6SourceCidrIp=2001:db8::/32"} {
		name, cidr, _ := strings.Cut(source, "=")
		p := fmt.Sprintf("Permissions.%d.", n+1)
		rules = rules.with(in{p + name: cidr, p + "IpProtocol": "ALL", p + "PortRange": "-1/-1", p + "Policy": "accept", p + "Priority": "1"})
	}
	a.product("ecs", "AuthorizeSecurityGroup", rules)
	a.product("ecs", "AuthorizeSecurityGroup", rules)
	have := a.product("ecs", "DescribeSecurityGroupAttribute", in{"SecurityGroupId": id})
	permissions := at(t, have, "Permissions", "Permission").([]any)
	wantEqual(t, "rules",
		[]string{strconv.Itoa(len(permissions)), text(t, permissions, 0, "Policy"), text(t, permissions, 1, "Ipv6SourceCidrIp")},
		[]string{"2", "Accept", "2001:db8::/32"})
	a.product("ecs", "ModifySecurityGroupRule",
		in{"SecurityGroupId": id, "SecurityGroupRuleId": text(t, permissions, 0, "SecurityGroupRuleId"), "Policy": "drop", "Priority": "100"})
	_, err := a.call("ecs", "AuthorizeSecurityGroup",
		in{"SecurityGroupId": id, "Permissions.1.IpProtocol": "ALL", "Permissions.1.PortRange": "-1/-1",
			"Permissions.1.SourceCidrIp": "2001:db8::/32"})
	wantCode(t, err, "InvalidSourceCidrIp.Malformed", 400)
	a.product("ecs", "RevokeSecurityGroup", in{"SecurityGroupId": id, "SecurityGroupRuleId.1": text(t, permissions, 1, "SecurityGroupRuleId")})
	left := a.product("ecs", "DescribeSecurityGroupAttribute", in{"SecurityGroupId": id})
	wantEqual(t, "the rule that is left", text(t, left, "Permissions", "Permission", 0, "Policy"), "Drop")
	a.product("ecs", "ModifySecurityGroupAttribute", in{"SecurityGroupId": id, "SecurityGroupName": "renamed"})
	found := a.product("ecs", "DescribeSecurityGroups", in{"VpcId": "vpc-emulator", "Tag.1.Key": "owner"})
	wantEqual(t, "name", text(t, found, "SecurityGroups", "SecurityGroup", 0, "SecurityGroupName"), "renamed")
	a.product("ecs", "DeleteSecurityGroup", in{"SecurityGroupId": id})
}
