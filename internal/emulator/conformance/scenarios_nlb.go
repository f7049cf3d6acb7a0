package conformance

import (
	"fmt"
	"strconv"
)

// nlbZones are the parameters of a new load balancer in both zones.
func (r *R) nlbZones(addresses string) P {
	p := P{"AddressType": addresses, "VpcId": r.env.VPC, "LoadBalancerName": "conformance"}
	for i := range 2 {
		p[fmt.Sprintf("ZoneMappings.%d.ZoneId", i+1)], p[fmt.Sprintf("ZoneMappings.%d.VSwitchId", i+1)] = r.env.Zones[i], r.env.VSwitches[i]
	}
	return p
}

// nlb makes an intranet load balancer and waits until it is active.
func (r *R) nlb() string {
	lb := text(r.do("nlb", "CreateLoadBalancer", r.nlbZones("Intranet"), shows("nlb.small-b", "LoadbalancerId.?", true)), "LoadbalancerId")
	r.active(lb)
	return lb
}

func (r *R) active(lb string) {
	r.do("nlb", "GetLoadBalancerAttribute", P{"LoadBalancerId": lb}, until("", "LoadBalancerStatus", "Active"))
}

// job waits until the job of an answer has ended.
func (r *R) job(answer map[string]any) {
	r.do("nlb", "GetJobStatus", P{"JobId": text(answer, "JobId")}, until("", "Status", "Succeeded"))
}

// serverGroup makes a group and waits until it is available.
func (r *R) serverGroup(p P, checks ...check) string {
	with := P{"ServerGroupName": "conformance", "VpcId": r.env.VPC}
	for name, value := range p {
		with[name] = value
	}
	answer := r.do("nlb", "CreateServerGroup", with, checks...)
	r.job(answer)
	return text(answer, "ServerGroupId")
}

// nlbServers are parameters with servers on the first instance, on ports from 8000.
func (r *R) nlbServers(group string, count int) P {
	p := P{"ServerGroupId": group}
	for i := range count {
		key := "Servers." + strconv.Itoa(i+1) + "."
		p[key+"ServerId"], p[key+"ServerType"], p[key+"Port"] = r.env.Instances[0], "Ecs", strconv.Itoa(8000+i)
	}
	return p
}

func nlbListener(lb, group, protocol string, port int) P {
	return P{"LoadBalancerId": lb, "ServerGroupId": group, "ListenerProtocol": protocol, "ListenerPort": strconv.Itoa(port)}
}

func nlbScenarios() []Scenario {
	return []Scenario{
		{Name: "nlb/regions", Product: "nlb", run: func(r *R) {
			r.do("nlb", "DescribeRegions", nil)
			r.do("nlb", "DescribeZones", nil)
		}},
		{Name: "nlb/load balancer", Product: "nlb", run: nlbBalancer},
		{Name: "nlb/token of a deleted load balancer", Product: "nlb", run: nlbToken},
		{Name: "nlb/refused creations", Product: "nlb", run: nlbRefusedCreations},
		{Name: "nlb/public", Product: "nlb", run: nlbPublic},
		{Name: "nlb/server groups", Product: "nlb", run: nlbGroups},
		{Name: "nlb/refused server groups", Product: "nlb", run: nlbRefusedGroups},
		{Name: "nlb/servers", Product: "nlb", run: nlbServerScenario},
		{Name: "nlb/refused servers", Product: "nlb", run: nlbRefusedServers},
	}
}

func nlbBalancer(r *R) {
	p := r.nlbZones("Intranet")
	p["ClientToken"] = r.token("nlb")
	lb := text(r.do("nlb", "CreateLoadBalancer", p), "LoadbalancerId")
	id := P{"LoadBalancerId": lb}
	r.do("nlb", "GetLoadBalancerAttribute", id, fits("nlb.reads-at-first"), once)
	p["LoadBalancerName"] = "other"
	r.do("nlb", "CreateLoadBalancer", p, refused("nlb.IdempotenceSignatureMismatch"))
	r.active(lb)
	r.do("nlb", "GetLoadBalancerAttribute", id, shows("nlb.default-name", "DNSName", lb+"."+r.env.Region+".nlb.aliyuncsslb.com"))
	r.do("nlb", "ListLoadBalancers", P{"LoadBalancerIds.1": lb}, shows("", "LoadBalancers.#", 1))
	r.job(r.do("nlb", "UpdateLoadBalancerAttribute", P{"LoadBalancerId": lb, "LoadBalancerName": "conformance-2"}))
	r.do("nlb", "UpdateLoadBalancerProtection", P{"LoadBalancerId": lb, "DeletionProtectionEnabled": "true"})
	r.do("nlb", "DeleteLoadBalancer", id, refused("nlb.OperationDenied.DeletionProtectionEnabled"))
	r.do("nlb", "UpdateLoadBalancerProtection", P{"LoadBalancerId": lb, "DeletionProtectionEnabled": "false"})
	r.do("nlb", "EnableLoadBalancerIpv6Internet", id, refused("nlb.OperationDenied.NonDualStackInstance"))
	r.do("nlb", "UpdateLoadBalancerAddressTypeConfig", P{"LoadBalancerId": lb, "AddressType": "Intranet"},
		refused("nlb.OperationDenied.AddressTypeNotChanged"))
	r.do("nlb", "AttachCommonBandwidthPackageToLoadBalancer", P{"LoadBalancerId": lb, "BandwidthPackageId": "cbwp-absent"},
		refused("nlb.OperationDenied.InternalLoadBalancer"))
	r.do("nlb", "DetachCommonBandwidthPackageFromLoadBalancer", P{"LoadBalancerId": lb, "BandwidthPackageId": "cbwp-absent"},
		refused("nlb.ResourceNotFound.BandwidthPackage"))
	r.do("nlb", "DeleteLoadBalancer", id)
	r.do("nlb", "GetLoadBalancerAttribute", P{"LoadBalancerId": "nlb-conformance0absent"}, refused("nlb.ResourceNotFound.loadBalancer"))
}

func nlbToken(r *R) {
	p := r.nlbZones("Intranet")
	p["ClientToken"] = r.token("gone")
	lb := text(r.do("nlb", "CreateLoadBalancer", p), "LoadbalancerId")
	r.active(lb)
	r.job(r.do("nlb", "DeleteLoadBalancer", P{"LoadBalancerId": lb}))
	r.do("nlb", "ListLoadBalancers", P{"LoadBalancerIds.1": lb}, until("", "LoadBalancers.#", 0))
	r.do("nlb", "CreateLoadBalancer", p, shows("nlb.token-of-deleted", "LoadbalancerId", lb))
}

func nlbRefusedCreations(r *R) {
	create := func(fact string, change P) {
		p := r.nlbZones("Intranet")
		for name, value := range change {
			p[name] = value
		}
		checks := []check{refused(fact)}
		if fact == "nlb.InvalidZones" {
			p = P{"AddressType": "Intranet", "VpcId": r.env.VPC, "ZoneMappings.1.ZoneId": r.env.Zones[0],
				"ZoneMappings.1.VSwitchId": r.env.VSwitches[0]}
			checks = append(checks, fits("nlb.zones-2"))
		}
		r.do("nlb", "CreateLoadBalancer", p, checks...)
	}
	create("nlb.InvalidZones", nil)
	create("nlb.ResourceNotFound.Vpc", P{"VpcId": "vpc-conformance0absent"})
	create("nlb.ResourceNotFound.VSwitch", P{"ZoneMappings.2.VSwitchId": "vsw-conformance0absent"})
	create("nlb.ResourceNotFound.SecurityGroup", P{"SecurityGroupIds.1": "sg-conformance0absent"})
	create("nlb.Mismatch.ZoneIdAndVswitchId", P{"ZoneMappings.2.ZoneId": r.env.Zones[0]})
	create("nlb.OperationFailed.DuplicateZones", P{"ZoneMappings.2.ZoneId": r.env.Zones[0], "ZoneMappings.2.VSwitchId": r.env.VSwitches[0]})
	create("nlb.IllegalParam.PrivateIPv4Address", P{"ZoneMappings.1.PrivateIPv4Address": "203.0.113.9"})
	create("nlb.ResourceInUse.IP", P{"ZoneMappings.1.PrivateIPv4Address": r.env.Address})
	create("nlb.OperationFailed.vSwitchNotSupportIpv6", P{"AddressIpVersion": "DualStack"})
	create("nlb.IllegalParam.AllocationId", P{"ZoneMappings.1.AllocationId": "eip-conformance0absent"})
	basic, advanced := r.securityGroup("normal"), r.securityGroup("enterprise")
	create("nlb.Conflict.SecurityGroup", P{"SecurityGroupIds.1": basic, "SecurityGroupIds.2": advanced})
	create("common.DryRunOperation", P{"DryRun": "true"})
}

func nlbPublic(r *R) {
	address := func(charge string) string {
		return text(r.do("vpc", "AllocateEipAddress", P{"InternetChargeType": charge, "Bandwidth": "1"}), "AllocationId")
	}
	byTraffic, byBandwidth := address("PayByTraffic"), address("PayByBandwidth")
	create := func(a, b, fact string) {
		p := r.nlbZones("Internet")
		p["ZoneMappings.1.AllocationId"], p["ZoneMappings.2.AllocationId"] = a, b
		r.do("nlb", "CreateLoadBalancer", p, refused(fact))
	}
	create(byTraffic, byTraffic, "nlb.DuplicatedParam.AllocationId")
	create(byTraffic, byBandwidth, "nlb.OperationDenied.OnlyPayByTrafficSupported")
	create(byTraffic, "eip-conformance0absent", "nlb.ResourceNotFound.Eip")
	lb := r.nlb()
	r.job(r.do("nlb", "UpdateLoadBalancerAddressTypeConfig", P{
		"LoadBalancerId": lb, "AddressType": "Internet",
		"ZoneMappings.1.ZoneId": r.env.Zones[0], "ZoneMappings.1.VSwitchId": r.env.VSwitches[0], "ZoneMappings.1.AllocationId": byTraffic,
		"ZoneMappings.2.ZoneId": r.env.Zones[1], "ZoneMappings.2.VSwitchId": r.env.VSwitches[1],
	}))
	create(byTraffic, "", "nlb.ResourceAlreadyAssociated.AllocationId")
	if r.options.Admin != nil {
		// A bandwidth package is paid by the month; only an emulator takes one that does not exist.
		p := P{"LoadBalancerId": lb, "BandwidthPackageId": "cbwp-conformance"}
		r.job(r.do("nlb", "AttachCommonBandwidthPackageToLoadBalancer", p))
		r.do("nlb", "AttachCommonBandwidthPackageToLoadBalancer", p, refused("nlb.ResourceAlreadyAssociated.BandwidthPackageId"))
		r.job(r.do("nlb", "DetachCommonBandwidthPackageFromLoadBalancer", p))
	}
	r.do("nlb", "ListLoadBalancers", P{"LoadBalancerIds.1": lb, "AddressType": "Internet"}, shows("", "LoadBalancers.#", 1))
	r.job(r.do("nlb", "UpdateLoadBalancerAddressTypeConfig", P{"LoadBalancerId": lb, "AddressType": "Intranet"}))
}

func nlbGroups(r *R) {
	group := r.serverGroup(P{"Protocol": "TCPSSL", "Tag.1.Key": "conformance-a", "Tag.1.Value": r.options.Tag}, fits("nlb.groups-tcpssl"))
	r.do("nlb", "ListServerGroups", P{"ServerGroupIds.1": group}, shows("nlb.groups-tcpssl", "ServerGroups.0.PreserveClientIpEnabled", false))
	r.serverGroup(P{"Protocol": "TCPSSL", "HealthCheckConfig.HealthCheckType": "UDP"}, fits("nlb.udp-checks-of-tcpssl"))
	r.do("nlb", "ListServerGroups",
		P{"Tag.1.Key": "conformance-a", "Tag.1.Value": r.options.Tag, "Tag.2.Key": "conformance-b", "Tag.2.Value": r.options.Tag},
		shows("nlb.group-tags-all", "ServerGroups.#", 0))
	r.do("nlb", "TagResources", P{"ResourceType": "servergroup", "ResourceId.1": group, "Tag.1.Key": "conformance-c", "Tag.1.Value": "c"})
	r.do("nlb", "ListTagResources", P{"ResourceType": "servergroup", "ResourceId.1": group}, shows("", "TagResources.#", 3))
	r.do("nlb", "UntagResources", P{"ResourceType": "servergroup", "ResourceId.1": group, "TagKey.1": "conformance-c"})
	many := P{"ResourceType": "servergroup", "ResourceId.1": group}
	for i := range 20 {
		many[fmt.Sprintf("Tag.%d.Key", i+1)] = fmt.Sprintf("conformance-%d", i)
	}
	r.do("nlb", "TagResources", many, refused("nlb.QuotaExceeded.TagsPerResource"))
	r.do("nlb", "TagResources", P{"ResourceType": "servergroup", "ResourceId.1": "sgp-conformance0absent", "Tag.1.Key": "a"},
		refused("nlb.ResourceNotFound.ResourceId"))
	job := r.do("nlb", "UpdateServerGroupAttribute", P{"ServerGroupId": group, "Scheduler": "Wlc"})
	r.job(job)
	list := P{}
	for i := range 20 {
		list[fmt.Sprintf("JobIds.%d", i+1)] = text(job, "JobId")
	}
	r.do("nlb", "ListAsynJobs", list, fits("nlb.ids-per-job-list"))
	r.do("nlb", "ListAsynJobs", P{"JobIds.1": text(job, "JobId")}, shows("nlb.count-is-text", "TotalCount", "1"))
	r.do("nlb", "ListAsynJobs", P{"JobIds.1": "job-conformance0absent"}, fits("nlb.unknown-job-fails-list"),
		refused("nlb.ResourceNotFound.JobId"))
	r.job(r.do("nlb", "DeleteServerGroup", P{"ServerGroupId": group}))
	r.do("nlb", "ListServerGroupServers", P{"ServerGroupId": group}, refused("nlb.ResourceNotFound.serverGroup"))
}

func nlbRefusedGroups(r *R) {
	const check = "HealthCheckConfig."
	create := func(fact string, p P) {
		with := P{"ServerGroupName": "conformance", "VpcId": r.env.VPC}
		for name, value := range p {
			with[name] = value
		}
		r.do("nlb", "CreateServerGroup", with, refused(fact))
	}
	create("nlb.IllegalParam.ServerGroupName", P{"ServerGroupName": "c"})
	create("nlb.IllegalParam.PreserveClientIpSwitch", P{"ServerGroupType": "Ip", "PreserveClientIpEnabled": "true"})
	create("nlb.IllegalParam.Scheduler", P{"Scheduler": "qch"})
	create("nlb.IllegalParam.AnyPortServerGroupConflictWithHealthCheckConfig", P{"AnyPortEnabled": "true"})
	create("nlb.IllegalParam.healthCheckType", P{check + "HealthCheckType": "UDP"})
	create("nlb.IllegalParam.healthCheckInterval",
		P{"Protocol": "UDP", check + "HealthCheckType": "UDP", check + "HealthCheckInterval": "5", check + "HealthCheckConnectTimeout": "10"})
	create("nlb.IlleagalParam.healthCheckUrl", P{check + "HealthCheckType": "HTTP", check + "HealthCheckUrl": "index.html"})
}

func nlbServerScenario(r *R) {
	group := r.serverGroup(P{"Protocol": "TCP"})
	r.job(r.do("nlb", "AddServersToServerGroup", r.nlbServers(group, 40), fits("nlb.servers-per-call-40")))
	r.do("nlb", "ListServerGroupServers", P{"ServerGroupId": group, "MaxResults": "100"}, shows("", "Servers.#", 40))
	update := r.nlbServers(group, 1)
	update["Servers.1.Weight"] = "5"
	r.job(r.do("nlb", "UpdateServerGroupServersAttribute", update))
	r.do("nlb", "AddServersToServerGroup", r.nlbServers(group, 1), refused("nlb.DuplicatedParam.Server"))
	gone := r.nlbServers(group, 1)
	gone["Servers.1.Port"] = "9999"
	r.do("nlb", "RemoveServersFromServerGroup", gone, refused("nlb.ResourceNotFound.BackendServer"))
	r.job(r.do("nlb", "RemoveServersFromServerGroup", r.nlbServers(group, 40)))
	r.do("nlb", "AddServersToServerGroup", r.nlbServers(group, 41), fits("nlb.servers-per-call-40"), refused("nlb.IllegalParamSize.Servers"))
	draining := r.serverGroup(P{"Protocol": "TCP", "ConnectionDrainEnabled": "true", "ConnectionDrainTimeout": "60"})
	r.job(r.do("nlb", "AddServersToServerGroup", r.nlbServers(draining, 1)))
	r.job(r.do("nlb", "RemoveServersFromServerGroup", r.nlbServers(draining, 1)))
	r.do("nlb", "ListServerGroupServers", P{"ServerGroupId": draining}, shows("nlb.removing-ends-with-job", "Servers.#", 0))
}

func nlbRefusedServers(r *R) {
	group, byIP := r.serverGroup(P{"Protocol": "TCP"}), r.serverGroup(P{"Protocol": "TCP", "ServerGroupType": "Ip"})
	add := func(group, fact, kind, id, ip, port string) {
		r.do("nlb", "AddServersToServerGroup", P{
			"ServerGroupId": group, "Servers.1.ServerType": kind, "Servers.1.ServerId": id, "Servers.1.ServerIp": ip, "Servers.1.Port": port,
		}, refused(fact))
	}
	add(group, "nlb.ResourceNotFound.Ecs", "Ecs", "i-conformance0absent", "", "80")
	add(group, "nlb.ResourceNotFound.Eni", "Eni", "eni-conformance0absent", r.env.Address, "80")
	add(group, "nlb.MissingParam.IP", "Eni", r.env.Interface, "", "80")
	add(group, "nlb.Mismatch.ServerType", "Ip", r.env.Address, r.env.Address, "80")
	add(group, "nlb.IllegalParam.RSPortConflictWithServerGroup", "Ecs", r.env.Instances[0], "", "0")
	add(byIP, "nlb.IllegalParam.IP", "Ip", "8.8.8.8", "8.8.8.8", "80")
}
