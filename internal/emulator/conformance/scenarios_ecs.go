package conformance

import (
	"fmt"
	"maps"
)

// instance are the parameters of a new instance.
func (r *R) instance() P {
	return P{"ImageId": r.env.Image, "InstanceType": r.env.InstanceType, "VSwitchId": r.env.VSwitches[0],
		"SecurityGroupId": r.env.SecurityGroup, "InstanceName": "conformance"}
}

func (r *R) status(id, want string) {
	r.do("ecs", "DescribeInstances", P{"InstanceIds": fmt.Sprintf("[%q]", id)}, until("", "Instances.Instance.0.Status", want))
}

func (r *R) running(id string) { r.status(id, "Running") }

func (r *R) securityGroup(kind string) string {
	return text(r.do("ecs", "CreateSecurityGroup", P{"VpcId": r.env.VPC, "SecurityGroupName": "conformance", "SecurityGroupType": kind}),
		"SecurityGroupId")
}

// otherSecurityGroup is one in the other VPC of the emulator of the tests.
func (r *R) otherSecurityGroup() string {
	return text(r.do("ecs", "CreateSecurityGroup", P{"VpcId": "vpc-other", "SecurityGroupName": "conformance"}), "SecurityGroupId")
}

func ecsScenarios() []Scenario {
	return []Scenario{
		{Name: "ecs/search", Product: "ecs", run: ecsSearch},
		{Name: "ecs/instance", Product: "ecs", run: ecsInstance},
		{Name: "ecs/security group", Product: "ecs", run: ecsSecurityGroup},
		{Name: "sts/identity", Product: "sts", run: func(r *R) {
			r.do("sts", "GetCallerIdentity", nil)
			role := func(name string) P { return P{"RoleArn": name, "RoleSessionName": "conformance"} }
			r.do("sts", "AssumeRole", role("acs:ram::1000000000000000:role/conformance-absent"), refused("sts.EntityNotExist.Role"))
			if r.env.Role == "" {
				return
			}
			p := role(r.env.Role)
			p["DurationSeconds"] = "1"
			r.do("sts", "AssumeRole", p, refused("sts.InvalidParameter.DurationSeconds"))
			p = role(r.env.Role)
			p["RoleSessionName"] = "no spaces"
			r.do("sts", "AssumeRole", p, refused("sts.InvalidParameter.RoleSessionName"))
		}},
		{Name: "sts/tokens", Product: "sts", run: stsTokens},
		{Name: "quotas/list", Product: "quotas", run: quotasList},
	}
}

// quotasList reads only. What an account has, and uses, differs from one to the next.
func quotasList(r *R) {
	list := func(more P, checks ...check) {
		p := P{"ProductCode": "slb", "QuotaActionCode": "slb_quota_instances_num"}
		maps.Copy(p, more)
		r.do("quotas", "ListProductQuotas", p, checks...)
	}
	list(nil, shows("quotas.default-general", "TotalCount", 1))
	list(P{"QuotaCategory": "CommonQuota"}, shows("quotas.no-region", "TotalCount", 1), shows("quotas.usage", "Quotas.0.Consumable", true))
	list(P{"QuotaCategory": "FlowControl"}, shows("", "TotalCount", 0))
	list(P{"QuotaCategory": "CommonQuota", "QuotaActionCode": "slb_quota_listeners_num"}, shows("quotas.usage", "Quotas.0.Consumable", false))
}

func ecsSearch(r *R) {
	r.do("ecs", "DescribeRegions", nil)
	r.do("ecs", "DescribeZones", nil)
	both := fmt.Sprintf("[%q,%q]", r.env.Instances[0], r.env.Instances[1])
	find := func(fact string, n int, p P) {
		r.do("ecs", "DescribeInstances", p, shows(fact, "Instances.Instance.#", n))
	}
	find("", 2, P{"InstanceIds": both})
	find("ecs.no-ids", 0, P{"InstanceIds": "[]"})
	find("ecs.unknown-ids", 1, P{"InstanceIds": fmt.Sprintf(`[%q,"i-conformance0absent"]`, r.env.Instances[0])})
	address := P{"InstanceIds": both, "PrivateIpAddresses": fmt.Sprintf("[%q]", r.env.Address)}
	find("ecs.addresses-need-network", 2, address)
	address["InstanceNetworkType"] = "vpc"
	find("ecs.addresses-need-network", 1, address)
	r.do("ecs", "DescribeInstances", P{"InstanceIds": both, "MaxResults": "100"}, shows("ecs.page-size-echo", "PageSize", 100))
	r.do("ecs", "DescribeInstanceStatus", P{"InstanceId.1": r.env.Instances[0]}, shows("", "InstanceStatuses.InstanceStatus.#", 1))
	r.do("ecs", "DescribeNetworkInterfaces", P{"InstanceId": r.env.Instances[0]},
		shows("ecs.interface-in-use", "NetworkInterfaceSets.NetworkInterfaceSet.0.Status", "InUse"))
	r.do("ecs", "ModifyNetworkInterfaceAttribute", P{"NetworkInterfaceId": r.env.Interface, "SourceDestCheck": "false"})
	r.do("ecs", "ModifyNetworkInterfaceAttribute", P{"NetworkInterfaceId": "eni-conformance0absent", "SourceDestCheck": "false"},
		refused("ecs.InvalidEniId.NotFound"))
}

func ecsInstance(r *R) {
	run := func(fact string, change P) {
		p := r.instance()
		for name, value := range change {
			p[name] = value
		}
		r.do("ecs", "RunInstances", p, refused(fact))
	}
	run("ecs.InvalidVSwitchId.NotFound", P{"VSwitchId": "vsw-conformance0absent"})
	run("ecs.InvalidVSwitchId.NotBelongToZone", P{"ZoneId": r.env.Zones[1]})
	run("ecs.InvalidPrivateIpAddress.Duplicated", P{"PrivateIpAddress": r.env.Address})
	run("ecs.InvalidRamRole.NotFound", P{"RamRoleName": "conformance-absent"})
	id := text(r.do("ecs", "RunInstances", r.instance()), "InstanceIdSets.InstanceIdSet.0")
	r.running(id)
	r.do("ecs", "StartInstance", P{"InstanceId": id}, refused("ecs.IncorrectInstanceStatus"))
	r.do("ecs", "StopInstance", P{"InstanceId": id, "ForceStop": "true"})
	r.status(id, "Stopped")
	r.do("ecs", "StartInstance", P{"InstanceId": id})
	r.running(id)
	r.do("ecs", "DeleteInstance", P{"InstanceId": id, "Force": "true"})
	r.do("ecs", "StopInstance", P{"InstanceId": "i-conformance0absent"}, refused("ecs.InvalidInstanceId.NotFound"))
}

func ecsSecurityGroup(r *R) {
	r.do("ecs", "CreateSecurityGroup", P{"VpcId": "vpc-conformance0absent"}, refused("ecs.InvalidVpcId.NotFound"))
	group := r.securityGroup("normal")
	authorize := func(source, value string, checks ...check) {
		r.do("ecs", "AuthorizeSecurityGroup", P{
			"SecurityGroupId": group, "Permissions.1.IpProtocol": "TCP", "Permissions.1.PortRange": "80/80", "Permissions.1." + source: value,
		}, checks...)
	}
	authorize("SourceCidrIp", "192.0.2.0/24")
	authorize("SourceCidrIp", "not a range", refused("ecs.InvalidSourceCidrIp.Malformed"))
	authorize("Ipv6SourceCidrIp", "not a range", refused("ecs.InvalidParam.Ipv6SourceCidrIp"))
	r.do("ecs", "ModifySecurityGroupAttribute", P{"SecurityGroupId": group, "Description": "conformance"})
	r.do("ecs", "DescribeSecurityGroups", P{"SecurityGroupId": group}, shows("", "SecurityGroups.SecurityGroup.#", 1))
	list := r.do("ecs", "DescribeSecurityGroupAttribute", P{"SecurityGroupId": group}, shows("", "Permissions.Permission.#", 1))
	r.do("ecs", "ModifySecurityGroupRule",
		P{"SecurityGroupId": group, "SecurityGroupRuleId": text(list, "Permissions.Permission.0.SecurityGroupRuleId"), "Description": "changed"})
	r.do("ecs", "ModifySecurityGroupRule",
		P{"SecurityGroupId": group, "SecurityGroupRuleId": "sgr-conformance0absent", "Description": "changed"},
		refused("ecs.InvalidSecurityGroupRuleId.NotFound"))
	r.do("ecs", "RevokeSecurityGroup",
		P{"SecurityGroupId": group, "SecurityGroupRuleId.1": text(list, "Permissions.Permission.0.SecurityGroupRuleId")})
	r.do("ecs", "DeleteSecurityGroup", P{"SecurityGroupId": group})
	r.do("ecs", "DescribeSecurityGroupAttribute", P{"SecurityGroupId": group}, refused("ecs.InvalidSecurityGroupId.NotFound"))
}

func stsTokens(r *R) {
	assume := func(token string, provider string, checks ...check) {
		role := r.env.Role
		if role == "" {
			role = "acs:ram::1000000000000000:role/conformance-absent"
		}
		r.do("sts", "AssumeRoleWithOIDC", P{"RoleArn": role, "OIDCProviderArn": provider, "OIDCToken": token, "RoleSessionName": "conformance"},
			append(checks, by(Unsigned))...)
	}
	assume(goodToken, "acs:ram::1000000000000000:oidc-provider/conformance-absent", refused("sts.AuthenticationFail.NoPermission"))
	if r.env.Provider == "" {
		return
	}
	assume(noToken, r.env.Provider, refused("sts.AuthenticationFail.OIDCToken.Invalid"))
	assume(strangeToken, r.env.Provider, refused("sts.AuthenticationFail.OIDCToken.AudienceNotMatch"))
	assume(expiredToken, r.env.Provider, refused("sts.AuthenticationFail.OIDCToken.Expired"))
	if r.env.Disabled.ID != "" {
		assume(goodToken, r.env.Provider)
		assume(goodToken, "acs:ram::1000000000000000:oidc-provider/signed", refused("sts.AuthenticationFail.OIDCToken.InvalidSignature"))
	}
}
