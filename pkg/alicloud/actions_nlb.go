package alicloud

// Ids that no resource has.
const (
	noNLB           = "nlb-doctor-none"
	noNLBListener   = "lsn-doctor-none"
	noNLBGroup      = "sgp-doctor-none"
	noSecurityGroup = "sg-doctor-none"
)

// nlbActions are those of NLB, and of the security groups that restrict its clients. Every write of NLB takes DryRun.
func nlbActions() []Action {
	on := func(more ...string) params { return nlbProbe("LoadBalancerId", noNLB, more...) }
	listener := func(more ...string) params { return nlbProbe("ListenerId", noNLBListener, more...) }
	group := func(more ...string) params { return nlbProbe("ServerGroupId", noNLBGroup, more...) }
	server := []string{"Servers.1.ServerId", noInstance, "Servers.1.ServerType", NLBServerECS, "Servers.1.Port", "1"}
	zones := []string{"ZoneMappings.1.ZoneId", "none", "ZoneMappings.1.VSwitchId", noVSwitch}
	certificates := []string{"AdditionalCertificateIds.1", "none"}
	groups := []string{"SecurityGroupIds.1", noSecurityGroup}
	actions := []Action{
		{Name: "AddServersToServerGroup", Why: "adding backend servers", probe: group(server...)},
		{Name: "AssociateAdditionalCertificatesWithListener", Why: "annotation additional-cert-ids", probe: listener(certificates...)},
		{Name: "AttachCommonBandwidthPackageToLoadBalancer", Why: "annotation bandwidth-package-id", probe: on("BandwidthPackageId", "none")},
		{Name: "CreateListener", Why: "ports", probe: on("ListenerPort", "1", "ListenerProtocol", NLBTCP, "ServerGroupId", noNLBGroup)},
		{Name: "CreateLoadBalancer", Why: "creating a load balancer for a Service",
			probe: nlbProbe("VpcId", noVPC, append(zones, "AddressType", NLBIntranet)...)},
		{Name: "CreateServerGroup", Why: "ports", probe: nlbProbe("VpcId", noVPC, "ServerGroupName", "none")},
		{Name: "DeleteListener", Why: "removed ports", probe: listener()},
		{Name: "DeleteLoadBalancer", Why: "deleting the load balancer of a Service", probe: on()},
		{Name: "DeleteServerGroup", Why: "removed ports; deletion", probe: group()},
		{Name: "DetachCommonBandwidthPackageFromLoadBalancer", Why: "annotation bandwidth-package-id", probe: on("BandwidthPackageId", "none")},
		{Name: "DisableLoadBalancerIpv6Internet", Why: "annotation ipv6-address-type", probe: on()},
		{Name: "DisassociateAdditionalCertificatesWithListener", Why: "annotation additional-cert-ids", probe: listener(certificates...)},
		{Name: "EnableLoadBalancerIpv6Internet", Why: "annotation ipv6-address-type", probe: on()},
		{Name: "GetJobStatus", Why: "reading the results of writes", probe: params{"JobId": "none"}},
		{Name: "GetLoadBalancerAttribute", Why: "reading the observed state", probe: params{"LoadBalancerId": noNLB}},
		{Name: "ListAsynJobs", Why: "reading the results of writes", probe: params{"JobIds.1": "none"}},
		{Name: "ListListenerCertificates", Why: "annotation additional-cert-ids", probe: params{"ListenerId": noNLBListener}},
		{Name: "ListListeners", Why: "reading the observed state", probe: params{"LoadBalancerIds.1": noNLB}},
		{Name: "ListLoadBalancers", Why: "finding existing resources", probe: params{"MaxResults": "1"}},
		{Name: "ListServerGroupServers", Why: "reading the observed state", probe: params{"ServerGroupId": noNLBGroup}},
		{Name: "ListServerGroups", Why: "finding existing resources", probe: params{"MaxResults": "1"}},
		{Name: "LoadBalancerJoinSecurityGroup", Why: "annotation security-group-ids; spec.loadBalancerSourceRanges", probe: on(groups...)},
		{Name: "LoadBalancerLeaveSecurityGroup", Why: "annotation security-group-ids; spec.loadBalancerSourceRanges", probe: on(groups...)},
		{Name: "RemoveServersFromServerGroup", Why: "removing backend servers", probe: group(server...)},
		{Name: "StartListener", Why: "ports", probe: listener()},
		{
			Name: "TagResources", Why: "annotation additional-resource-tags",
			probe: nlbProbe("ResourceType", NLBTagLoadBalancer, "ResourceId.1", noNLB, "Tag.1.Key", "none", "Tag.1.Value", "none"),
		},
		{
			Name: "UntagResources", Why: "annotations additional-resource-tags and preserve-lb-on-delete",
			probe: nlbProbe("ResourceType", NLBTagLoadBalancer, "ResourceId.1", noNLB, "TagKey.1", "none"),
		},
		{Name: "UpdateListenerAttribute", Why: "changed ports and annotations", probe: listener()},
		{Name: "UpdateLoadBalancerAddressTypeConfig", Why: "annotation address-type", probe: on("AddressType", NLBIntranet)},
		{Name: "UpdateLoadBalancerAttribute", Why: "annotations name and cross-zone-enabled", probe: on()},
		{Name: "UpdateLoadBalancerProtection", Why: "annotations delete-protection and modification-protection; deletion", probe: on()},
		{Name: "UpdateLoadBalancerZones", Why: "annotation zone-maps", probe: on(zones...)},
		{Name: "UpdateServerGroupAttribute", Why: "changed annotations", probe: group()},
		{Name: "UpdateServerGroupServersAttribute", Why: "changing weights", probe: group(server...)},
	}
	for i := range actions {
		actions[i].Product = "nlb"
	}
	actions = append(actions, securityGroupActions()...)
	for i := range actions {
		actions[i].Features = []Feature{FeatureNLB}
	}
	return actions
}

func securityGroupActions() []Action {
	const why = "spec.loadBalancerSourceRanges"
	on := params{"SecurityGroupId": noSecurityGroup}
	rule := params{
		"SecurityGroupId": noSecurityGroup, "Permissions.1.IpProtocol": "ALL", "Permissions.1.PortRange": "-1/-1",
		"Permissions.1.SourceCidrIp": "192.0.2.0/24",
	}
	return []Action{
		{Product: "ecs", Name: "AuthorizeSecurityGroup", Why: why, probe: rule},
		{Product: "ecs", Name: "CreateSecurityGroup", Why: why, probe: params{"VpcId": noVPC}},
		{Product: "ecs", Name: "DeleteSecurityGroup", Why: why, probe: on},
		{Product: "ecs", Name: "DescribeSecurityGroupAttribute", Why: why, probe: on},
		{Product: "ecs", Name: "DescribeSecurityGroups", Why: why, probe: params{"PageSize": "1"}},
		{Product: "ecs", Name: "RevokeSecurityGroup", Why: why,
			probe: params{"SecurityGroupId": noSecurityGroup, "SecurityGroupRuleId.1": "none"}},
	}
}

// nlbProbe names a resource that does not exist, in a dry run.
func nlbProbe(name, id string, more ...string) params {
	p := params{name: id, "DryRun": "true"}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}
