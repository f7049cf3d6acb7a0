package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// published is an internet NLB with a listener on port 80 and one instance in each zone behind it.
type published struct {
	*account
	lb, group, listener, name string
}

func publish(t *testing.T, o emulator.Options, more in) published {
	t.Helper()
	p := published{account: newAccount(t, o)}
	p.put("i-1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
	p.put("i-2", emulator.InstanceSpec{VSwitchID: "vsw-b"})
	p.lb = p.newNLB(in{"AddressType": "Internet"}.with(more))
	p.group = p.newNLBGroup(in{
		"HealthCheckConfig.HealthCheckInterval": "1", "HealthCheckConfig.HealthCheckConnectTimeout": "1",
		"HealthCheckConfig.HealthyThreshold": "2", "HealthCheckConfig.UnhealthyThreshold": "2",
	})
	p.nlbCall("AddServersToServerGroup", in{
		"ServerGroupId": p.group, "Servers.1.ServerId": "i-1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "8080",
		"Servers.2.ServerId": "i-2", "Servers.2.ServerType": "Ecs", "Servers.2.Port": "8080",
	})
	p.listener = p.newNLBListener(p.lb, p.group, 80, nil)
	p.name = text(t, p.nlb(p.lb), "DNSName") + ":80"
	return p
}

// dial names the instance that answers the internet.
func (p published) dial() (string, error) {
	answer, err := ask(p.Fabric().DialVIP(p.t.Context(), "tcp", p.name))
	id, _, _ := strings.Cut(answer, " ")
	return id, err
}

// state is what the admin API shows.
func (p published) state() any {
	p.t.Helper()
	_, body := get(p.t, "GET", p.url+"/_emulator/state", "")
	var state any
	testkit.Must(0, json.Unmarshal([]byte(body), &state))(p.t)
	return state
}

// TestNLBCarriesTraffic: what calls of the API change holds for the next connection.
func TestNLBCarriesTraffic(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	p := publish(t, emulator.Options{Machines: m}, nil)
	share := func() map[string]int {
		n := map[string]int{}
		for range 8 {
			n[testkit.Must(p.dial())(t)]++
		}
		return n
	}
	wantEqual(t, "both zones", share(), map[string]int{"i-1": 4, "i-2": 4})
	weight := in{"ServerGroupId": p.group, "Servers.1.ServerId": "i-2", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "8080",
		"Servers.1.Weight": "0"}
	p.nlbCall("UpdateServerGroupServersAttribute", weight)
	wantEqual(t, "weight 0", share(), map[string]int{"i-1": 8})
	p.nlbCall("UpdateServerGroupServersAttribute", weight.with(in{"Servers.1.Weight": "100"}))

	sg := text(t, p.product("ecs", "CreateSecurityGroup", in{"VpcId": "vpc-emulator", "SecurityGroupType": "enterprise"}), "SecurityGroupId")
	drop := in{"SecurityGroupId": sg, "Permissions.1.IpProtocol": "ALL", "Permissions.1.PortRange": "-1/-1", "Permissions.1.Policy": "drop",
		"Permissions.1.Priority": "100", "Permissions.1.SourceCidrIp": "0.0.0.0/0"}
	p.product("ecs", "AuthorizeSecurityGroup", drop)
	p.nlbCall("LoadBalancerJoinSecurityGroup", in{"LoadBalancerId": p.lb, "SecurityGroupIds.1": sg})
	if id, err := p.dial(); err == nil {
		t.Errorf("%s answers a source that is dropped", id)
	}
	allow := in{"SecurityGroupId": sg, "Permissions.1.IpProtocol": "ALL", "Permissions.1.PortRange": "-1/-1", "Permissions.1.Policy": "accept",
		"Permissions.1.Priority": "1", "Permissions.1.SourceCidrIp": "203.0.113.0/24"}
	p.product("ecs", "AuthorizeSecurityGroup", allow)
	wantEqual(t, "an admitted source", share(), map[string]int{"i-1": 4, "i-2": 4})

	p.nlbCall("UpdateLoadBalancerAddressTypeConfig", twoZones.with(in{"LoadBalancerId": p.lb, "AddressType": "Intranet"}))
	if _, err := p.dial(); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an intranet NLB answers the internet: %v", err)
	}
	inside, err := ask(p.Fabric().Dial(t.Context(), "i-1", "tcp", p.name))
	if err == nil {
		t.Errorf("%q answers an address of the VPC that no rule admits", inside)
	}
	p.nlbCall("LoadBalancerLeaveSecurityGroup", in{"LoadBalancerId": p.lb, "SecurityGroupIds.1": sg})
	testkit.Must(ask(p.Fabric().Dial(t.Context(), "i-1", "tcp", p.name)))(t)
	p.nlbCall("StopListener", in{"ListenerId": p.listener})
	if _, err := p.Fabric().Dial(t.Context(), "i-1", "tcp", p.name); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a stopped listener answers: %v", err)
	}
}

// TestNLBHealthStatus: GetListenerHealthStatus returns the servers that are not healthy, with the reason.
func TestNLBHealthStatus(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	p := publish(t, emulator.Options{Machines: m, Fabric: true}, nil)
	status := func() string {
		t.Helper()
		var all []string
		servers := at(t, p.nlbCall("GetListenerHealthStatus", in{"ListenerId": p.listener}), "ListenerHealthStatus", 0, "ServerGroupInfos", 0,
			"NonNormalServers").([]any)
		for _, s := range servers {
			all = append(all,
				strings.TrimSpace(fmt.Sprint(text(t, s, "ServerId"), " ", text(t, s, "Status"), " ", text(t, s, "Reason", "ReasonCode"))))
		}
		return strings.Join(all, ", ")
	}
	becomes := func(want string) {
		t.Helper()
		testkit.Eventually(t, "health is "+want, func(context.Context) bool { return status() == want })
	}
	wantEqual(t, "before the threshold", status(), "i-1 Initial, i-2 Initial")
	becomes("")
	m.turnOff("i-1")
	becomes("i-1 Unhealthy CONNECT_FAIL")
	wantEqual(t, "connections", []string{testkit.Must(p.dial())(t), testkit.Must(p.dial())(t)}, []string{"i-2", "i-2"})
	p.nlbCall("UpdateServerGroupServersAttribute", in{
		"ServerGroupId": p.group, "Servers.1.ServerId": "i-1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "8080", "Servers.1.Weight": "0",
	})
	becomes("i-1 Unused")
	server := at(t, p.state(), "serverGroups", 0, "servers", 0)
	wantEqual(t, "in the state",
		[]string{text(t, server, "ServerId"), text(t, server, "health", 0, "ListenerId"), text(t, server, "health", 0, "Status")},
		[]string{"i-1", p.listener, "Unused"})
	p.nlbCall("UpdateServerGroupAttribute", in{"ServerGroupId": p.group, "HealthCheckConfig.HealthCheckEnabled": "false"})
	becomes("i-1 Unavailable, i-2 Unavailable")
}

// TestNLBState: the admin API shows instances with the addresses behind their names, sockets, jobs and security groups.
func TestNLBState(t *testing.T) {
	t.Parallel()
	p := publish(t, emulator.Options{Machines: newMachines(t), Fabric: true}, nil)
	sg := text(t, p.product("ecs", "CreateSecurityGroup", in{"VpcId": "vpc-emulator", "SecurityGroupName": "sources"}), "SecurityGroupId")
	p.product("ecs", "AuthorizeSecurityGroup",
		in{"SecurityGroupId": sg, "Permissions.1.IpProtocol": "TCP", "Permissions.1.PortRange": "80/80",
			"Permissions.1.SourceCidrIp": "10.0.0.0/8"})
	state := p.state()
	lb := at(t, state, "networkLoadBalancers", 0)
	zones := []string{}
	for n := range 2 {
		zones = append(zones, text(t, lb, "ZoneMappings", n, "LoadBalancerAddresses", 0, "PublicIPv4Address"))
	}
	wantEqual(t, "addresses", []string{text(t, lb, "Addresses", 0), text(t, lb, "Addresses", 1)}, zones)
	endpoints := at(t, lb, "listeners", 0, "Endpoints").([]any)
	wantEqual(t, "endpoints", []string{fmt.Sprint(len(endpoints)), text(t, endpoints, 1, "Address"), text(t, endpoints, 1, "Port")},
		[]string{"4", zones[0], "80"})
	c := testkit.Must(new(net.Dialer).DialContext(t.Context(), "tcp", text(t, endpoints, 1, "LoopbackEndpoint")))(t)
	answer := testkit.Must(ask(c, nil))(t)
	if !strings.Contains(answer, ":8080") {
		t.Errorf("the socket answers %q", answer)
	}
	wantEqual(t, "job", text(t, state, "networkLoadBalancerJobs", 0, "Status"), "Succeeded")
	wantEqual(t, "rule",
		[]string{text(t, state, "securityGroups", 0, "SecurityGroupName"), text(t, state, "securityGroups", 0, "Permissions", 0, "PortRange")},
		[]string{"sources", "80/80"})
}

// TestNLBSnapshot: what was there carries traffic again, with its addresses, and they count as taken.
func TestNLBSnapshot(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Machines: newMachines(t), Snapshot: filepath.Join(t.TempDir(), "state.json"), Config: dualStackConfig()}
	first := publish(t, o, in{"AddressIpVersion": "DualStack"})
	sg := text(t, first.product("ecs", "CreateSecurityGroup", in{"VpcId": "vpc-emulator"}), "SecurityGroupId")
	first.nlbCall("LoadBalancerJoinSecurityGroup", in{"LoadBalancerId": first.lb, "SecurityGroupIds.1": sg})
	before := first.state()
	testkit.Must(0, first.Close())(t)

	second := first
	second.account = newAccount(t, o)
	wantEqual(t, "state", second.state(), before)
	testkit.Must(second.dial())(t)
	ipv6 := func(lb string) string {
		return text(t, second.nlb(lb), "ZoneMappings", 0, "LoadBalancerAddresses", 0, "Ipv6Address")
	}
	if next := second.newNLB(in{"AddressIpVersion": "DualStack"}); ipv6(next) == ipv6(second.lb) {
		t.Errorf("%s is given out twice", ipv6(next))
	}
}

func dualStackConfig() *cloud.Config {
	config := cloud.DefaultConfig()
	config.VPCs[0].IPv6CIDR = "2001:db8::/56"
	for i := range config.VSwitches {
		config.VSwitches[i].IPv6CIDR = fmt.Sprintf("2001:db8:0:%d::/64", i)
	}
	return config
}
