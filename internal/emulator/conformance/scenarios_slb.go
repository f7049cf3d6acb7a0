package conformance

import (
	"encoding/json"
	"fmt"
	"strconv"
)

const absent = "lb-conformance0absent00"

// intranet are the parameters of a load balancer that costs little.
func (r *R) intranet() P {
	return P{"AddressType": "intranet", "VSwitchId": r.env.VSwitches[0], "VpcId": r.env.VPC, "LoadBalancerName": "conformance",
		"InstanceChargeType": "PayByCLCU"}
}

// balancer makes an intranet load balancer.
func (r *R) balancer() string {
	return text(r.do("slb", "CreateLoadBalancer", r.intranet()), "LoadBalancerId")
}

func (r *R) vServerGroup(lb string) string {
	return text(r.do("slb", "CreateVServerGroup", P{"LoadBalancerId": lb, "VServerGroupName": "conformance"}), "VServerGroupId")
}

// servers are backend servers on the first instance, on ports from 8000.
func (r *R) servers(count int) string {
	type server struct {
		ID     string `json:"serverId"`
		Port   int    `json:"port"`
		Weight int    `json:"weight"`
	}
	all := make([]server, count)
	for i := range all {
		all[i] = server{r.env.Instances[0], 8000 + i, 10}
	}
	data, err := json.Marshal(all)
	if err != nil {
		r.fail(err)
	}
	return string(data)
}

// listener are the parameters of a TCP listener.
func (r *R) listener(lb string, port int, group string) P {
	return P{"LoadBalancerId": lb, "ListenerPort": strconv.Itoa(port), "VServerGroupId": group, "Bandwidth": "-1"}
}

func slbScenarios() []Scenario {
	return []Scenario{
		{Name: "slb/regions", Product: "slb", run: func(r *R) {
			r.do("slb", "DescribeRegions", nil)
			r.do("slb", "DescribeZones", nil)
			r.do("slb", "DescribeAvailableResource", nil)
		}},
		{Name: "slb/load balancer", Product: "slb", run: slbBalancer},
		{Name: "slb/protection", Product: "slb", run: slbProtection},
		{Name: "slb/search", Product: "slb", run: slbSearch},
		{Name: "slb/charges", Product: "slb", run: slbCharges},
		{Name: "slb/refused creations", Product: "slb", run: slbRefusedCreations},
		{Name: "slb/vServer group", Product: "slb", run: slbGroup},
		{Name: "slb/backend servers", Product: "slb", run: slbServers},
		{Name: "slb/many backend servers", Product: "slb", run: slbManyServers},
		{Name: "slb/refused backend servers", Product: "slb", run: slbRefusedServers},
	}
}

func slbBalancer(r *R) {
	p := r.intranet()
	p["ClientToken"] = r.token("lb")
	lb := text(r.do("slb", "CreateLoadBalancer", p), "LoadBalancerId")
	r.do("slb", "DescribeLoadBalancerAttribute", P{"LoadBalancerId": lb}, shows("slb.reads-current", "LoadBalancerId", lb),
		shows("slb.created-active", "LoadBalancerStatus", "active"))
	p["LoadBalancerName"] = "other"
	r.do("slb", "CreateLoadBalancer", p, refused("slb.LX_REQUEST_TOKEN_CONFLICT"))
	r.do("slb", "SetLoadBalancerName", P{"LoadBalancerId": lb, "LoadBalancerName": "conformance-2"})
	group := r.vServerGroup(lb)
	r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 80, group))
	r.do("slb", "SetLoadBalancerStatus", P{"LoadBalancerId": lb, "LoadBalancerStatus": "inactive"})
	r.do("slb", "StartLoadBalancerListener", P{"LoadBalancerId": lb, "ListenerPort": "80"}, refused("slb.LbStatusNotSupport"))
	r.do("slb", "SetLoadBalancerStatus", P{"LoadBalancerId": lb, "LoadBalancerStatus": "active"})
	r.do("slb", "DescribeLoadBalancerAttribute", P{"LoadBalancerId": lb}, shows("", "LoadBalancerName", "conformance-2"),
		shows("slb.misspelled-ports", "ListenerPortsAndProtocal.ListenerPortAndProtocal.#", 1))
	r.do("slb", "DeleteLoadBalancer", P{"LoadBalancerId": lb})
	r.do("slb", "DescribeLoadBalancerAttribute", P{"LoadBalancerId": lb}, refused("slb.InvalidLoadBalancerId.NotFound"))
}

func slbProtection(r *R) {
	lb := r.balancer()
	r.do("slb", "SetLoadBalancerModificationProtection",
		P{"LoadBalancerId": lb, "ModificationProtectionStatus": "ConsoleProtection", "ModificationProtectionReason": "conformance"})
	r.do("slb", "SetLoadBalancerDeleteProtection", P{"LoadBalancerId": lb, "DeleteProtection": "on"})
	r.do("slb", "DeleteLoadBalancer", P{"LoadBalancerId": lb}, refused("slb.OperationDenied.DeleteProtectionIsOn"))
	r.do("slb", "SetLoadBalancerDeleteProtection", P{"LoadBalancerId": lb, "DeleteProtection": "off"})
}

func slbSearch(r *R) {
	p := r.intranet()
	p["Tag.1.Key"], p["Tag.1.Value"] = "conformance-a", r.options.Tag
	lb := text(r.do("slb", "CreateLoadBalancer", p), "LoadBalancerId")
	found := func(fact string, n int) check { return shows(fact, "LoadBalancers.LoadBalancer.#", n) }
	r.do("slb", "DescribeLoadBalancers", P{"Tag.1.Key": "conformance-a", "Tag.1.Value": r.options.Tag}, found("slb.tag-search-current", 1))
	r.do("slb", "DescribeLoadBalancers", P{"LoadBalancerId": lb}, found("slb.reads-current", 1), shows("slb.default-page", "PageSize", 50))
	r.do("slb", "TagResources", P{"ResourceType": "instance", "ResourceId.1": lb, "Tag.1.Key": "conformance-b", "Tag.1.Value": r.options.Tag})
	tags := fmt.Sprintf(`[{"TagKey":"conformance-b","TagValue":%q},{"TagKey":"conformance-c","TagValue":%q}]`, r.options.Tag, r.options.Tag)
	r.do("slb", "DescribeLoadBalancers", P{"Tags": tags}, found("slb.tags-any", 1))
	r.do("slb", "ListTagResources", P{"ResourceType": "instance", "ResourceId.1": lb}, shows("", "TagResources.TagResource.#", 3))
	many := P{"ResourceType": "instance", "ResourceId.1": lb}
	for i := range 20 {
		many[fmt.Sprintf("Tag.%d.Key", i+1)] = fmt.Sprintf("conformance-%d", i)
	}
	r.do("slb", "TagResources", many, refused("slb.TooManyTags"))
	r.do("slb", "TagResources", P{"ResourceType": "vservergroup", "ResourceId.1": "rsp-absent", "Tag.1.Key": "a"},
		refused("slb.InvalidResourceId.NotFound"))
	r.do("slb", "UntagResources", P{"ResourceType": "instance", "ResourceId.1": lb, "TagKey.1": "conformance-b"})
}

func slbCharges(r *R) {
	lb := text(r.do("slb", "CreateLoadBalancer",
		P{"AddressType": "internet", "LoadBalancerName": "conformance", "LoadBalancerSpec": "slb.s1.small",
			"InstanceChargeType": "PayBySpec", "InternetChargeType": "paybytraffic"}, fits("slb.spec-sold")), "LoadBalancerId")
	r.do("slb", "DescribeLoadBalancers", P{"LoadBalancerId": lb},
		shows("slb.list-charge-code", "LoadBalancers.LoadBalancer.0.InternetChargeType", "4"),
		shows("slb.list-charge-code", "LoadBalancers.LoadBalancer.0.InternetChargeTypeAlias", "paybytraffic"))
	r.do("slb", "ModifyLoadBalancerInstanceSpec", P{"LoadBalancerId": lb, "LoadBalancerSpec": "slb.s2.small"})
	r.do("slb", "ModifyLoadBalancerInternetSpec", P{"LoadBalancerId": lb, "InternetChargeType": "paybybandwidth", "Bandwidth": "2"})
	r.do("slb", "DescribeLoadBalancerAttribute", P{"LoadBalancerId": lb},
		shows("slb.charge-type-at-midnight", "InternetChargeType", "paybytraffic"),
		shows("slb.charge-type-at-midnight", "Bandwidth", 2))
	r.do("slb", "ModifyLoadBalancerInternetSpec", P{"LoadBalancerId": lb, "InternetChargeType": "paybytraffic"})
	r.do("slb", "ModifyLoadBalancerInstanceChargeType", P{"LoadBalancerId": lb, "InstanceChargeType": "PayByCLCU"})
	r.do("slb", "ModifyLoadBalancerInstanceSpec", P{"LoadBalancerId": lb, "LoadBalancerSpec": "slb.s2.small"},
		refused("slb.OperationDenied.PayByCLCU"))
	r.do("slb", "ModifyLoadBalancerInstanceChargeType",
		P{"LoadBalancerId": lb, "InstanceChargeType": "PayBySpec", "LoadBalancerSpec": "slb.s1.small"}, refused("slb.Operation.NotAllowed"))
	r.do("slb", "CreateLoadBalancer", P{"AddressType": "internet", "LoadBalancerName": "conformance", "InstanceChargeType": "PayByCLCU",
		"InternetChargeType": "paybybandwidth", "Bandwidth": "1"}, fits("slb.usage-by-bandwidth"))
}

func slbRefusedCreations(r *R) {
	p := r.intranet()
	p["InternetChargeType"] = "paybybandwidth"
	r.do("slb", "CreateLoadBalancer", p, fits("slb.intranet-by-traffic"), refused("common.InvalidParameter"))
	p = r.intranet()
	p["AddressIPVersion"], p["VSwitchId"] = "ipv6", r.env.VSwitches[1]
	r.do("slb", "CreateLoadBalancer", p, fits("slb.ipv6-needs-range"), refused("common.InvalidParameter"))
	p = r.intranet()
	p["VSwitchId"] = "vsw-conformance0absent"
	r.do("slb", "CreateLoadBalancer", p, refused("slb.InvalidVSwitchId.NotFound"))
}

func slbGroup(r *R) {
	lb := r.balancer()
	group := r.vServerGroup(lb)
	r.do("slb", "DescribeVServerGroups", P{"LoadBalancerId": lb}, shows("", "VServerGroups.VServerGroup.#", 1))
	r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 80, group))
	r.do("slb", "DeleteVServerGroup", P{"VServerGroupId": group}, refused("slb.RspoolVipExist"))
	r.do("slb", "DeleteLoadBalancerListener", P{"LoadBalancerId": lb, "ListenerPort": "80", "ListenerProtocol": "tcp"})
	r.do("slb", "DeleteVServerGroup", P{"VServerGroupId": group})
	r.do("slb", "DescribeVServerGroupAttribute", P{"VServerGroupId": group}, refused("slb.group-not-found"))
	r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 81, group), refused("slb.ResourceNotFound.VServerGroup"))
}

func slbServers(r *R) {
	lb := r.balancer()
	group := r.vServerGroup(lb)
	id := P{"VServerGroupId": group}
	server := func(n int) string { return fmt.Sprintf("BackendServers.BackendServer.%d.", n) }
	r.do("slb", "AddVServerGroupBackendServers",
		P{"VServerGroupId": group, "BackendServers": fmt.Sprintf(`[{"serverId":%q,"port":80}]`, r.env.Instances[0])})
	r.do("slb", "DescribeVServerGroupAttribute", id, shows("slb.default-weight", server(0)+"Weight", 100))
	r.do("slb", "AddVServerGroupBackendServers",
		P{"VServerGroupId": group, "BackendServers": fmt.Sprintf(`[{"ServerId":%q,"Port":"81","Weight":"7"}]`, r.env.Instances[0])},
		fits("slb.keys-any-case"))
	r.do("slb", "SetVServerGroupAttribute", P{"VServerGroupId": group, "VServerGroupName": "conformance-2"})
	r.do("slb", "DescribeVServerGroupAttribute", id, shows("slb.set-keeps-servers", "BackendServers.BackendServer.#", 2),
		shows("slb.keys-any-case", server(1)+"Weight", 7))
	r.do("slb", "ModifyVServerGroupBackendServers", P{
		"VServerGroupId": group, "OldBackendServers": fmt.Sprintf(`[{"serverId":%q,"port":81}]`, r.env.Instances[0]),
		"NewBackendServers": fmt.Sprintf(`[{"serverId":%q,"port":82,"weight":5}]`, r.env.Instances[1]),
	})
	r.do("slb", "RemoveVServerGroupBackendServers",
		P{"VServerGroupId": group, "BackendServers": fmt.Sprintf(`[{"serverId":%q,"port":9}]`, r.env.Instances[0])},
		fits("slb.absent-server-ignored"))
	p := r.instance()
	extra := text(r.do("ecs", "RunInstances", p), "InstanceIdSets.InstanceIdSet.0")
	r.running(extra)
	r.do("slb", "AddVServerGroupBackendServers",
		P{"VServerGroupId": group, "BackendServers": fmt.Sprintf(`[{"serverId":%q,"port":83}]`, extra)})
	r.do("ecs", "DeleteInstance", P{"InstanceId": extra, "Force": "true"})
	r.do("slb", "DescribeVServerGroupAttribute", id, shows("slb.released-server-stays", "BackendServers.BackendServer.#", 3))
}

func slbManyServers(r *R) {
	group := r.vServerGroup(r.balancer())
	r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": r.servers(40)}, fits("slb.servers-per-call-40"))
	r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": r.servers(41)},
		refused("slb.TooManyBackendServers"))
	long := make([]byte, 200)
	for i := range long {
		long[i] = 'd'
	}
	r.do("slb", "SetVServerGroupAttribute", P{
		"VServerGroupId": group,
		"BackendServers": fmt.Sprintf(`[{"serverId":%q,"port":8000,"weight":1,"description":%q}]`, r.env.Instances[0], long),
	}, fits("slb.long-descriptions"))
}

func slbRefusedServers(r *R) {
	lb := r.balancer()
	group := r.vServerGroup(lb)
	add := func(servers, fact string) {
		r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": servers}, refused(fact))
	}
	add(`[{"serverId":"i-conformance0absent","port":80}]`, "slb.InvalidServerId.NotExist")
	add(`[{"serverId":"eni-conformance0absent","port":80,"type":"eni"}]`, "slb.ResourceNotFound.vServers")
	add(fmt.Sprintf(`[{"serverId":%q,"port":80,"type":"eni","serverIp":"10.99.99.99"}]`, r.env.Interface),
		"slb.InvalidBackendServers.ServerIpConflict")
	stopped := text(r.do("ecs", "RunInstances", r.instance()), "InstanceIdSets.InstanceIdSet.0")
	r.running(stopped)
	r.do("ecs", "StopInstance", P{"InstanceId": stopped, "ForceStop": "true"})
	r.status(stopped, "Stopped")
	add(fmt.Sprintf(`[{"serverId":%q,"port":80}]`, stopped), "slb.ObtainIpFail")
}
