package ecs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/ecs"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/nlb"
)

// The parts of stories.
const (
	runs   = "RunInstances ImageId=m InstanceType=ecs.g7.large SecurityGroupId=sg-1 VSwitchId="
	group  = "CreateSecurityGroup VpcId=vpc-emulator > group=SecurityGroupId\n"
	admits = "AuthorizeSecurityGroup SecurityGroupId=$group"
	change = "ModifySecurityGroupRule SecurityGroupId=$group SecurityGroupRuleId="
)

// config has an instance that runs.
func config(c *cloud.Config) { c.Instances = []cloud.InstanceConfig{{ID: "i-1", VSwitchID: "vsw-a"}} }

// rule is a rule of a security group as a call has it.
func rule(n int, more string) string {
	text := fmt.Sprintf(" Permissions.%d.IpProtocol=ALL Permissions.%d.PortRange=-1/-1", n, n)
	if more != "" {
		text += fmt.Sprintf(" Permissions.%d.%s", n, more)
	}
	return text
}

// TestRefusals: what the emulated ECS refuses, and with which code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	story := emulatortest.Story
	elsewhere := map[string]string{
		"Forbidden.RAM": "a key without permissions", "InvalidOperation.DeletionProtection": "only a person protects an instance",
	}
	emulatortest.CheckRefusals(t, emulatortest.Products{ecs.Product, nlb.Product}, elsewhere,
		story("a vSwitch that is not there", runs+"vsw-9", "InvalidVSwitchId.NotFound"),
		story("a vSwitch of another zone", runs+"vsw-a ZoneId=cn-hangzhou-b", "InvalidVSwitchId.NotBelongToZone"),
		story("more instances than a vSwitch has addresses", runs+"vsw-c Amount=100", "InvalidVSwitchId.IpNotEnough", func(c *cloud.Config) {
			c.VSwitches = append(c.VSwitches, cloud.VSwitchConfig{ID: "vsw-c", VPCID: "vpc-emulator", Zone: "cn-hangzhou-a", CIDR: "10.3.0.0/28"})
		}),
		story("an address that is taken", runs+"vsw-a PrivateIpAddress=10.1.0.9\n"+runs+"vsw-a PrivateIpAddress=10.1.0.9",
			"InvalidPrivateIpAddress.Duplicated"),
		story("one address for two instances", runs+"vsw-a PrivateIpAddress=10.1.0.9 Amount=2", "InvalidParameter"),
		story("a role that is not there", runs+"vsw-a RamRoleName=nobody", "InvalidRamRole.NotFound"),
		story("a dry run", runs+"vsw-a DryRun=true", "DryRunOperation"),
		story("a token with other parameters", runs+"vsw-a ClientToken=t\n"+runs+"vsw-b ClientToken=t", "IdempotentParameterMismatch"),
		story("an instance that is not there", "StopInstance InstanceId=i-9", "InvalidInstanceId.NotFound"),
		story("an instance that runs is started", "StartInstance InstanceId=i-1", "IncorrectInstanceStatus", config),
		story("an instance that runs is deleted", "DeleteInstance InstanceId=i-1", "IncorrectInstanceStatus", config),
		story("an instance that is stopping is deleted", "StopInstance InstanceId=i-1\nDeleteInstance InstanceId=i-1", "IncorrectInstanceStatus",
			config),
		story("an instance stops, starts, stops and goes",
			"StopInstance InstanceId=i-1\nwait 1s\nStartInstance InstanceId=i-1\nwait 1s\nStopInstance InstanceId=i-1\nwait 1s\nDeleteInstance "+
				"InstanceId=i-1", "", config),
		story("an instance that runs is deleted by force", "DeleteInstance InstanceId=i-1 Force=true\nStopInstance InstanceId=i-1",
			"InvalidInstanceId.NotFound", config),
		story("an unknown instance in a list is left out", `DescribeInstances InstanceIds=["i-9"]`, ""),
		story("a network interface that is not there", "ModifyNetworkInterfaceAttribute NetworkInterfaceId=eni-9", "InvalidEniId.NotFound"),

		story("a security group in a VPC that is not there", "CreateSecurityGroup VpcId=vpc-9", "InvalidVpcId.NotFound"),
		story("a security group that is not there", "DeleteSecurityGroup SecurityGroupId=sg-9", "InvalidSecurityGroupId.NotFound"),
		story("a security group that an NLB is in",
			group+"nlb:CreateLoadBalancer AddressType=Internet VpcId=vpc-emulator SecurityGroupIds.1=$group "+
				"ZoneMappings.1.ZoneId=cn-hangzhou-a ZoneMappings.1.VSwitchId=vsw-a "+
				"ZoneMappings.2.ZoneId=cn-hangzhou-b ZoneMappings.2.VSwitchId=vsw-b\nDeleteSecurityGroup SecurityGroupId=$group",
			"DependencyViolation"),
		story("a security group that nobody is in", group+"DeleteSecurityGroup SecurityGroupId=$group", ""),
		story("a rule without a source", group+admits+rule(1, ""), "MissingParameter"),
		story("a source that is none of IPv4", group+admits+rule(1, "SourceCidrIp=2001:db8::/32"), "InvalidSourceCidrIp.Malformed"),
		story("a source that is none of IPv6", group+admits+rule(1, "Ipv6SourceCidrIp=10.0.0.0/8"), "InvalidParam.Ipv6SourceCidrIp"),
		story("a rule twice", group+admits+rule(1, "SourceCidrIp=10.0.0.0/8")+"\n"+admits+rule(1, "SourceCidrIp=10.0.0.0/8"), ""),
		story("a rule that is not there", group+change+"sgr-9", "InvalidSecurityGroupRuleId.NotFound"),
		story("more rules than a security group may have", group+manyRules(0)+manyRules(1)+manyRules(2), "AuthorizationLimitExceed"),
	)
}

// manyRules are as many as a call takes, another hundred for each number.
func manyRules(hundred int) string {
	var story strings.Builder
	story.WriteString(admits)
	for i := range 100 {
		story.WriteString(rule(i+1, fmt.Sprintf("SourceCidrIp=10.%d.%d.0/24", hundred, i)))
	}
	return story.String() + "\n"
}
