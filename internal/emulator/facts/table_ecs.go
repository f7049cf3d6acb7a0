package facts

func ecs() []Fact {
	const p = "ecs"
	return []Fact{
		behave(p, "denied-is-empty", on(pageECS), "DescribeInstances returns an empty list to a caller without permission",
			by("DescribeInstances"), account),
		behave(p, "no-ids", on(pageECS), "an empty array of InstanceIds finds nothing", by("DescribeInstances")),
		behave(p, "unknown-ids", on(pageECS), "IDs that do not exist are missing from the list", by("DescribeInstances")),
		behave(p, "addresses-need-network", on(pageInstances), "PrivateIpAddresses has an effect only with InstanceNetworkType vpc",
			by("DescribeInstances")),
		behave(p, "page-size-echo", code(codeCCM), "PageSize in the response is the MaxResults of the call",
			by("DescribeInstances", "DescribeNetworkInterfaces")),
		behave(p, "interface-in-use", on(pageECS), "the primary network interface of an instance is InUse", by("DescribeNetworkInterfaces")),
		refuse(p, "InvalidRamRole.NotFound", 404, assumed(noSource), "the RAM role does not exist", by("RunInstances")),
		refuse(p, "InvalidInstanceId.NotFound", 404, assumed("the status is not documented"), "the instance does not exist"),
		refuse(p, "IncorrectInstanceStatus", 403, on(pageECS), "the instance is not in the state that the call needs"),
		refuse(p, "InvalidOperation.DeletionProtection", 403, assumed(noSource), "the instance is protected from deletion", provoked),
		refuse(p, "InvalidOperation.Conflict", 400, code(codeCCM), "another operation on the network interface is in progress", provoked,
			transient),
		refuse(p, "InvalidEniId.NotFound", 404, assumed(noSource), "the network interface does not exist", by("ModifyNetworkInterfaceAttribute")),
		refuse(p, "InvalidVSwitchId.NotFound", 404, on(pageECS), "the vSwitch does not exist", by("RunInstances")),
		refuse(p, "InvalidVSwitchId.NotBelongToZone", 400, assumed(noSource), "the vSwitch is not in the zone", by("RunInstances")),
		refuse(p, "InvalidVSwitchId.IpNotEnough", 400, assumed(noSource), "the vSwitch has too few free addresses", by("RunInstances"), account),
		refuse(p, "InvalidPrivateIpAddress.Duplicated", 400, assumed(noSource), "the address is in use, or not one of the vSwitch",
			by("RunInstances")),
		refuse(p, "InvalidVpcId.NotFound", 404, on(pageSecurity), "the VPC does not exist", by("CreateSecurityGroup")),
		refuse(p, "InvalidSecurityGroupId.NotFound", 404, on(pageSecurity), "the security group does not exist"),
		refuse(p, "InvalidSecurityGroupRuleId.NotFound", 404, on(pageSecurity), "the rule does not exist", by("ModifySecurityGroupRule")),
		refuse(p, "InvalidSourceCidrIp.Malformed", 400, assumed(noSource), "the source is not an IPv4 address range",
			by("AuthorizeSecurityGroup")),
		refuse(p, "InvalidParam.Ipv6SourceCidrIp", 400, assumed(noSource), "the source is not an IPv6 address range",
			by("AuthorizeSecurityGroup")),
		refuse(p, "DependencyViolation", 403, on(pageSecurity), "an instance or a load balancer is in the security group",
			by("DeleteSecurityGroup"), transient),
		refuse(p, "AuthorizationLimitExceed", 403, on(pageSecurity), "the security group has reached its quota of rules",
			by("AuthorizeSecurityGroup"), account),
	}
}

func sts() []Fact {
	const p = "sts"
	page := on(pageSTS)
	return []Fact{
		refuse(p, "EntityNotExist.Role", 404, assumed("the status is not documented"), "the role does not exist", by("AssumeRole")),
		refuse(p, "InvalidParameter.RoleSessionName", 400, page, "the name of the session has 2 to 64 letters, digits and .@_-",
			by("AssumeRole")),
		refuse(p, "InvalidParameter.DurationSeconds", 400, page, "the duration is below 900 seconds, or above that of the role",
			by("AssumeRole")),
		refuse(p, "AuthenticationFail.NoPermission", 401, page, "the provider is not registered, or the role does not trust it",
			by("AssumeRoleWithOIDC")),
		refuse(p, "AuthenticationFail.OIDCToken.Invalid", 401, page, "the token is not valid", by("AssumeRoleWithOIDC")),
		refuse(p, "AuthenticationFail.OIDCToken.InvalidSignature", 401, page, "the signature of the token is not valid", by("AssumeRoleWithOIDC"),
			account),
		refuse(p, "AuthenticationFail.OIDCToken.AudienceNotMatch", 401, page, "no audience of the token is registered", by("AssumeRoleWithOIDC")),
		refuse(p, "AuthenticationFail.OIDCToken.Expired", 401, page, "the token has expired", by("AssumeRoleWithOIDC")),
	}
}
