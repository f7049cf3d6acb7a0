package conformance

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// commonScenarios check the gateway, which all products share.
func commonScenarios() []Scenario {
	return []Scenario{
		{Name: "common/requests", Product: "slb", run: func(r *R) {
			r.do("slb", "DescribeRegions", nil, by(XML), shows("common.xml", "root", "DescribeRegionsResponse"))
			r.do("slb", "DescribeRegions", nil, by(LateTimestamp), fits("common.timestamp-window"))
			r.do("slb", "DescribeRegions", nil, by(ACS3), fits("common.acs3"))
			r.do("slb", "DescribeLoadBalancerAttribute", nil, refused("common.MissingParameter"))
			r.do("slb", "DescribeLoadBalancers", P{"PageSize": "100000"}, refused("common.InvalidParameter"))
			r.do("slb", "DescribeNothing", nil, refused("common.UnsupportedOperation"))
			r.do("slb", "DescribeRegions", nil, by(NoVersion), refused("common.NoSuchVersion"))
			r.do("slb", "DescribeLoadBalancers", P{"RegionId": "nowhere-1"}, refused("common.InvalidRegionId.NotFound"))
		}},
		{Name: "common/signatures", Product: "slb", run: func(r *R) {
			r.do("slb", "DescribeRegions", nil, by(UnknownKey), refused("common.InvalidAccessKeyId.NotFound"))
			r.do("slb", "DescribeRegions", nil, by(WrongSignature), refused("common.SignatureDoesNotMatch"))
			r.do("slb", "DescribeRegions", nil, by(NoSignature), refused("common.IncompleteSignature"))
			r.do("slb", "DescribeRegions", nil, by(OldTimestamp), refused("common.IllegalTimestamp"))
			r.do("slb", "DescribeRegions", nil, by(UsedNonce), refused("common.SignatureNonceUsed"))
		}},
		{Name: "common/tokens", Product: "vpc", run: func(r *R) {
			p := P{"VpcId": r.env.VPC, "RouteTableName": "conformance", "ClientToken": r.token("table")}
			table := text(r.do("vpc", "CreateRouteTable", p), "RouteTableId")
			r.do("vpc", "CreateRouteTable", p, shows("common.token-replay", "RouteTableId", table))
			p["RouteTableName"] = "other"
			r.do("vpc", "CreateRouteTable", p, refused("common.IdempotentParameterMismatch"))
			r.do("ecs", "DescribeInstances", P{"DryRun": "true"}, refused("common.DryRunOperation"))
		}},
	}
}

// token is a ClientToken of this run.
func (r *R) token(name string) string { return "conformance-" + r.options.Tag + "-" + name }

func text(v any, path string) string {
	s, _ := at(v, path).(string)
	return s
}

// Subscription is the name of the scenario that leaves a load balancer: nothing can remove a subscription. It runs on emulators only.
const Subscription = "account/subscription"

// accountScenarios check refusals that only the emulator of the tests can be brought to: with keys, networks and quotas of its own.
func accountScenarios() []Scenario {
	return append([]Scenario{
		{Name: "account/gateway", Product: "slb", Fixture: true, Emulator: true, run: func(r *R) {
			r.do("slb", "DescribeRegions", nil, by(NoProduct), refused("common.InvalidAction.NotFound"))
			r.do("slb", "DescribeRegions", nil, by(Put), refused("common.UnsupportedHTTPMethod"))
			r.do("slb", "DescribeRegions", nil, by(TooLarge), refused("common.too-large"))
			r.do("slb", "DescribeRegions", nil, by(DisabledKey), refused("common.InvalidAccessKeyId.Inactive"))
			r.do("slb", "DescribeLoadBalancers", nil, by(RestrictedKey), refused("common.Forbidden.RAM"))
			r.do("ecs", "DescribeInstances", nil, by(RestrictedKey), shows("ecs.denied-is-empty", "TotalCount", 0))
		}},
		{Name: "account/temporary key", Product: "sts", Fixture: true, Emulator: true, run: func(r *R) {
			r.do("sts", "AssumeRole", P{"RoleArn": r.env.Role, "RoleSessionName": "conformance"})
			r.do("slb", "DescribeRegions", nil, by(TemporaryKey))
			r.do("slb", "DescribeRegions", nil, by(NoToken), refused("common.MissingSecurityToken"))
			r.do("slb", "DescribeRegions", nil, by(WrongToken), refused("common.InvalidSecurityToken.Malformed"))
		}},
	}, slices.Concat(accountSLB(), accountGroups(), accountOthers())...)
}

// clockScenarios set the clock of the emulator forward. They run last: others would find their leftovers older.
func clockScenarios() []Scenario {
	return []Scenario{
		{Name: "clock/tokens", Product: "vpc", Emulator: true, run: func(r *R) {
			p := P{"VpcId": r.env.VPC, "RouteTableName": "conformance-clock", "ClientToken": r.token("clock")}
			r.do("vpc", "CreateRouteTable", p)
			r.advance("23h")
			r.do("vpc", "CreateRouteTable", p)
			named := P{"VpcId": r.env.VPC, "RouteTableName": "conformance-clock"}
			r.do("vpc", "DescribeRouteTableList", named, shows("common.token-replay", "TotalCount", 1))
			r.advance("2h")
			r.do("vpc", "CreateRouteTable", p, fits("common.token-life"))
			r.do("vpc", "DescribeRouteTableList", named, shows("common.token-life", "TotalCount", 2))
		}},
		{Name: "clock/jobs", Product: "nlb", Emulator: true, run: func(r *R) {
			answer := r.do("nlb", "CreateServerGroup", P{"ServerGroupName": "conformance", "VpcId": r.env.VPC, "Protocol": "TCP"})
			r.job(answer)
			r.advance("50m")
			r.job(answer)
			r.advance("20m")
			r.do("nlb", "GetJobStatus", P{"JobId": text(answer, "JobId")}, fits("nlb.job-life"), refused("nlb.ResourceNotFound.JobId"))
		}},
	}
}

// advance sets the clock of the emulator forward.
func (r *R) advance(by string) {
	r.admin(http.MethodPost, "/_emulator/clock", fmt.Sprintf(`{"advance":%q}`, by))
}

func accountSLB() []Scenario {
	return []Scenario{
		{Name: "account/locked", Product: "slb", Emulator: true, run: func(r *R) {
			lb := r.balancer()
			group := r.vServerGroup(lb)
			r.admin(http.MethodPut, "/_emulator/loadbalancers/"+lb, `{"LoadBalancerStatus":"locked"}`)
			r.do("slb", "SetLoadBalancerName", P{"LoadBalancerId": lb, "LoadBalancerName": "locked"}, refused("slb.ActionNotAllowed"))
			r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": r.servers(1)},
				refused("slb.LbStatusNotSupport"))
			r.admin(http.MethodPut, "/_emulator/loadbalancers/"+lb, `{"LoadBalancerStatus":"active"}`)
		}},
		{Name: "account/quotas of CLB", Product: "slb", Emulator: true, run: func(r *R) {
			lb := r.balancer()
			group := r.vServerGroup(lb)
			r.settings(`{"quotas":{"loadBalancers":1,"listenersPerLoadBalancer":1,"backendsPerLoadBalancer":1,"loadBalancersPerInstance":1,"acls":1,"aclEntries":1,"listenersPerAcl":1}}`)
			r.do("slb", "CreateLoadBalancer", r.intranet(), refused("slb.ORDER.QUOTA_EXCEEDED"))
			r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 80, group))
			r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 81, group), refused("slb.ListenerNumberOverLimit"))
			r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": r.servers(2)},
				refused("slb.InstanceBackendServerNumberOverLimit"))
			acl := text(r.do("slb", "CreateAccessControlList", P{"AclName": "conformance"}), "AclId")
			r.do("slb", "CreateAccessControlList", P{"AclName": "conformance"}, refused("slb.QuotaLimitExceeds.AclNumber"))
			r.do("slb", "AddAccessControlListEntry", P{"AclId": acl, "AclEntrys": `[{"entry":"10.0.0.0/8"},{"entry":"11.0.0.0/8"}]`},
				refused("slb.QuotaLimitExceeds.TotalAclEntry"))
			access := P{"LoadBalancerId": lb, "ListenerPort": "80", "AclStatus": "on", "AclType": "white", "AclId": acl}
			r.do("slb", "SetLoadBalancerTCPListenerAttribute", access)
			r.settings(`{"quotas":{"loadBalancers":9,"listenersPerLoadBalancer":9,"backendsPerLoadBalancer":9}}`)
			access["ListenerPort"] = "82"
			r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 82, group))
			r.do("slb", "SetLoadBalancerTCPListenerAttribute", access, refused("slb.QuotaLimitExceeds.AclAttachedToListener"))
		}},
		{Name: "account/instance behind many", Product: "slb", Emulator: true, run: func(r *R) {
			r.settings(`{"quotas":{"loadBalancersPerInstance":1}}`)
			for i := range 2 {
				group := r.vServerGroup(r.balancer())
				if p := (P{"VServerGroupId": group, "BackendServers": r.servers(1)}); i == 0 {
					r.do("slb", "AddVServerGroupBackendServers", p)
				} else {
					r.do("slb", "AddVServerGroupBackendServers", p, refused("slb.QuotaExceeded.AttachedLoadBalancers"))
				}
			}
		}},
		{Name: "account/sales ended", Product: "slb", Emulator: true, run: func(r *R) {
			r.settings(`{"specSalesEnded":true}`)
			p := r.intranet()
			p["LoadBalancerSpec"], p["InstanceChargeType"] = "slb.s1.small", "PayBySpec"
			r.do("slb", "CreateLoadBalancer", p, refused("slb.ShareSlbHaltSales"))
		}},
		{Name: "account/other VPC", Product: "slb", Fixture: true, Emulator: true, run: func(r *R) {
			group := r.vServerGroup(r.balancer())
			r.do("slb", "AddVServerGroupBackendServers",
				P{"VServerGroupId": group, "BackendServers": fmt.Sprintf(`[{"serverId":%q,"port":80}]`, r.env.OtherInstance)},
				refused("slb.NetworkConflict"))
			p := r.intranet()
			p["VSwitchId"] = "vsw-tiny"
			r.do("slb", "CreateLoadBalancer", p, refused("slb.VSwitchAvailableIpNotExist"))
		}},
		{Name: Subscription, Product: "slb", Fixture: true, Emulator: true, run: func(r *R) {
			p := r.intranet()
			p["PayType"], p["PricingCycle"], p["Duration"] = "PrePay", "month", "1"
			lb := text(r.do("slb", "CreateLoadBalancer", p), "LoadBalancerId")
			r.do("slb", "DeleteLoadBalancer", P{"LoadBalancerId": lb}, refused("slb.InvalidChargeType"))
			r.made = nil
		}},
	}
}

// accountGroups check quotas of vServer groups, which pages do not name.
func accountGroups() []Scenario {
	return []Scenario{
		{Name: "account/vServer groups", Product: "slb", Emulator: true, run: func(r *R) {
			lb := r.balancer()
			for range 50 {
				r.vServerGroup(lb)
			}
			r.do("slb", "CreateVServerGroup", P{"LoadBalancerId": lb, "VServerGroupName": "conformance"}, fits("slb.groups-without-quota"))
		}},
		{Name: "account/servers of a vServer group", Product: "slb", Emulator: true, run: func(r *R) {
			group := r.vServerGroup(r.balancer())
			r.settings(`{"quotas":{"backendsPerLoadBalancer":201,"backendsPerCall":200}}`)
			r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": r.servers(200)})
			one := fmt.Sprintf(`[{"serverId":%q,"port":9000}]`, r.env.Instances[0])
			r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": one}, fits("slb.group-servers-without-quota"))
		}},
	}
}

func accountOthers() []Scenario {
	return []Scenario{
		{Name: "account/NLB", Product: "nlb", Fixture: true, Emulator: true, run: func(r *R) {
			lb := r.nlb()
			group := r.serverGroup(P{"Protocol": "TCP"})
			r.settings(`{"quotas":{"serversPerNlbServerGroup":1}}`)
			r.job(r.do("nlb", "AddServersToServerGroup", r.nlbServers(group, 1)))
			p := r.nlbServers(group, 1)
			p["Servers.1.Port"] = "9999"
			r.do("nlb", "AddServersToServerGroup", p, refused("nlb.QuotaExceeded.QuotaInsufficient"))
			r.do("nlb", "LoadBalancerJoinSecurityGroup", P{"LoadBalancerId": lb, "SecurityGroupIds.1": r.otherSecurityGroup()},
				refused("nlb.Mismatch.VpcId"))
			q := r.nlbZones("Intranet")
			q["ZoneMappings.2.VSwitchId"] = "vsw-tiny"
			r.do("nlb", "CreateLoadBalancer", q, refused("nlb.ResourceNotEnough.VSwitchIp"))
			q = r.nlbZones("Internet")
			q["BandwidthPackageId"] = "cbwp-conformance"
			for i := range 2 {
				q[fmt.Sprintf("ZoneMappings.%d.AllocationId", i+1)] = text(r.do("vpc", "AllocateEipAddress", P{"InternetChargeType": "PayByTraffic"}),
					"AllocationId")
			}
			r.do("nlb", "CreateLoadBalancer", q, fits("nlb.package-with-addresses"))
			r.settings(`{"nlbGroupsRefuseTCPSSL":true}`)
			r.do("nlb", "CreateServerGroup", P{"ServerGroupName": "conformance", "VpcId": r.env.VPC, "Protocol": "TCPSSL"},
				refused("nlb.IllegalParam.Protocol"))
		}},
		{Name: "account/VPC and ECS", Product: "vpc", Fixture: true, Emulator: true, run: func(r *R) {
			table := r.table()
			r.settings(`{"quotas":{"routeEntriesPerTable":1,"routeTablesPerVpc":1}}`)
			r.do("vpc", "CreateRouteTable", P{"VpcId": r.env.VPC}, refused("vpc.QuotaExceeded.RouteTable"))
			r.do("vpc", "CreateRouteEntry", r.entry(table, "172.31.0.0/24"))
			r.do("vpc", "CreateRouteEntry", r.entry(table, "172.31.1.0/24"), refused("vpc.QuotaExceeded"))
			many := P{"RouteTableId": table, "DestinationCidrBlock": "172.31.2.0/24", "NextHopList.1.NextHopId": r.env.Instances[0]}
			r.do("vpc", "CreateRouteEntry", many, refused("vpc.UnsupportedParameter"))
			p := r.instance()
			p["VSwitchId"], p["ZoneId"] = "vsw-tiny", ""
			r.do("ecs", "RunInstances", p, refused("ecs.InvalidVSwitchId.IpNotEnough"))
			sg := r.securityGroup("normal")
			for i := range 2 {
				r.do("ecs", "AuthorizeSecurityGroup", rules(sg, i*100, 100))
			}
			r.do("ecs", "AuthorizeSecurityGroup", rules(sg, 200, 1), refused("ecs.AuthorizationLimitExceed"))
		}},
	}
}

func rules(group string, from, count int) P {
	p := P{"SecurityGroupId": group}
	for i := range count {
		n := from + i
		key := fmt.Sprintf("Permissions.%d.", i+1)
		p[key+"IpProtocol"], p[key+"PortRange"], p[key+"SourceCidrIp"] = "TCP", "1/1", fmt.Sprintf("10.%d.%d.0/24", n/250, n%250)
	}
	return p
}

// provokedScenarios make an emulator answer what the cloud answers only when it is busy or broken: the SDK and the tables of codes must
// know it. No run on a real account can check them.
func provokedScenarios() []Scenario {
	var all []Scenario
	for _, f := range facts.All() {
		if f.Check != facts.Provoked || f.Code == "" {
			continue
		}
		product := f.Product
		if product == "common" {
			product = "slb"
		}
		action := "DescribeRegions"
		if product == "vpc" {
			action = "DescribeVpcs"
		}
		all = append(all, Scenario{Name: "provoked/" + f.ID, Product: product, Emulator: true, run: func(r *R) {
			r.admin(http.MethodPost, "/_emulator/faults",
				fmt.Sprintf(`{"action":%q,"product":%q,"code":%q,"status":%d}`, action, product, f.Code, f.Status))
			r.do(product, action, nil, refused(f.ID))
		}})
	}
	return append(all, Scenario{Name: "provoked/vpc.batch-busy", Product: "vpc", Emulator: true, run: func(r *R) {
		table := r.table()
		r.admin(http.MethodPost, "/_emulator/faults", `{"action":"CreateRouteEntries","failItems":1}`)
		r.do("vpc", "CreateRouteEntries", r.entries(table, "172.31.0.0/24"), shows("", "FailedCount", 1),
			shows("vpc.batch-busy", "FailedRouteEntries.0.FailedCode", "VPC_ROUTE_ENTRY_STATUS_ERROR"))
	}})
}
