package ecs

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Bounds of security groups: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-authorizesecuritygroup
const (
	rulesPerCall  = 100
	rulesPerGroup = 200
)

const (
	basicGroup      = "normal"
	enterpriseGroup = "enterprise"
)

func (e service) securityGroupActions() []api.Action {
	id := api.Str("SecurityGroupId", api.Required)
	name, description := api.Str("SecurityGroupName", api.Len(2, 128)), api.Str("Description", api.Len(2, 256))
	rule := []api.Param{
		api.Str("Policy", api.OneOf("accept", "drop")), api.Num("Priority", 1, 100), api.Str("IpProtocol"), api.Str("PortRange"),
		api.Str("SourceCidrIp"), api.Str("Ipv6SourceCidrIp"), api.Str("Description", api.Len(1, 512)),
	}
	token := api.Str("ClientToken", api.Len(1, 64))
	rules := api.ObjectsOf("Permissions", rulesPerCall, rule...)
	needed := rules
	api.Required(&needed)
	return []api.Action{
		{Name: "CreateSecurityGroup", Kind: api.Write, Params: []api.Param{
			name, description, api.Str("VpcId", api.Required), api.Str("SecurityGroupType", api.OneOf(basicGroup, enterpriseGroup)),
			api.Str("ResourceGroupId"), cloud.TagParams(cloud.MaxTags), token,
		}, Run: e.createSecurityGroup},
		{Name: "DeleteSecurityGroup", Kind: api.Write, Params: []api.Param{id}, Run: e.deleteSecurityGroup},
		{Name: "DescribeSecurityGroups", Kind: api.Read, Params: append(paging(),
			api.Str("SecurityGroupId"), api.JSONList("SecurityGroupIds", pageLimit), api.Str("SecurityGroupName"), api.Str("VpcId"),
			api.Str("SecurityGroupType"), cloud.TagParams(cloud.MaxTags)),
			Run: e.describeSecurityGroups},
		{Name: "DescribeSecurityGroupAttribute", Kind: api.Read,
			Params: []api.Param{id, api.Str("Direction", api.OneOf("ingress", "egress", "all"))}, Run: e.describeSecurityGroup},
		{Name: "AuthorizeSecurityGroup", Kind: api.Write, Params: []api.Param{id, needed, token}, Run: e.authorizeSecurityGroup},
		{Name: "RevokeSecurityGroup", Kind: api.Write, Params: []api.Param{id, rules, api.ListOf("SecurityGroupRuleId", rulesPerCall), token},
			Run: e.revokeSecurityGroup},
		{Name: "ModifySecurityGroupRule", Kind: api.Write, Params: append(slices.Clone(rule), id, api.Str("SecurityGroupRuleId", api.Required)),
			Run: e.modifySecurityGroupRule},
		{Name: "ModifySecurityGroupAttribute", Kind: api.Write, Params: []api.Param{id, name, description}, Run: e.modifySecurityGroup},
	}
}

func (e service) createSecurityGroup(c *api.Call) (any, error) {
	mismatch := api.BadRequest("IdempotentParameterMismatch", "The ClientToken was used before with other parameters.")
	return e.Tokens.Once(c, mismatch, func() (any, error) {
		if _, ok := e.VPCs.Get(c.Str("VpcId")); !ok {
			return nil, api.NotFound("InvalidVpcId.NotFound", "The VPC %s does not exist.", c.Str("VpcId"))
		}
		g := &cloud.SecurityGroup{
			Object: e.NewObject("sg"), Name: c.Str("SecurityGroupName"), Description: c.Str("Description"), VPCID: c.Str("VpcId"),
			Type: c.Or("SecurityGroupType", basicGroup), ResourceGroupID: c.Str("ResourceGroupId"),
		}
		g.Tags = g.Tags.With(cloud.TagsIn(c))
		e.SecurityGroups.Add(g)
		return struct{ SecurityGroupId string }{g.ID}, nil //nolint:revive // name on the wire
	})
}

func (e service) securityGroup(c *api.Call) (*cloud.SecurityGroup, error) {
	g, ok := e.SecurityGroups.Get(c.Str("SecurityGroupId"))
	if !ok {
		return nil, api.NotFound("InvalidSecurityGroupId.NotFound", "The specified SecurityGroupId %s does not exist.", c.Str("SecurityGroupId"))
	}
	return g, nil
}

// deleteSecurityGroup refuses a group that a load balancer or a network interface has joined.
func (e service) deleteSecurityGroup(c *api.Call) (any, error) {
	g, err := e.securityGroup(c)
	if err != nil {
		return nil, err
	}
	balancers := e.NLBs.Select(func(lb *cloud.NLB) bool { return slices.Contains(lb.SecurityGroups, g.ID) })
	interfaces := e.Interfaces.Select(func(eni *cloud.Interface) bool { return slices.Contains(eni.SecurityGroups, g.ID) })
	if len(balancers)+len(interfaces) > 0 {
		return nil, api.Forbidden("DependencyViolation", "There are still instances in the security group %s.", g.ID)
	}
	e.SecurityGroups.Delete(g)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

type securityGroupView struct { //nolint:revive // names on the wire
	SecurityGroupId, SecurityGroupName, Description, VpcId, SecurityGroupType, ResourceGroupId, CreationTime string

	Tags struct{ Tag []cloud.TagView }
}

func (e service) describeSecurityGroups(c *api.Call) (any, error) {
	ids, _ := c.Params.JSONStrings("SecurityGroupIds")
	tags := cloud.TagsIn(c)
	all := e.SecurityGroups.Select(func(g *cloud.SecurityGroup) bool {
		return (len(ids) == 0 || slices.Contains(ids, g.ID)) && c.Or("SecurityGroupId", g.ID) == g.ID &&
			c.Or("SecurityGroupName", g.Name) == g.Name &&
			c.Or("VpcId", g.VPCID) == g.VPCID && c.Or("SecurityGroupType", g.Type) == g.Type && c.Sees(g.Created) && g.Tags.Match(tags)
	})
	items, p, err := cut(c, all)
	if err != nil {
		return nil, err
	}
	answer := struct {
		page
		SecurityGroups struct{ SecurityGroup []securityGroupView }
	}{page: p}
	answer.SecurityGroups.SecurityGroup = make([]securityGroupView, 0, len(items))
	for _, g := range items {
		answer.SecurityGroups.SecurityGroup = append(answer.SecurityGroups.SecurityGroup, viewOfSecurityGroup(g))
	}
	return answer, nil
}

func viewOfSecurityGroup(g *cloud.SecurityGroup) securityGroupView {
	v := securityGroupView{
		SecurityGroupId: g.ID, SecurityGroupName: g.Name, Description: g.Description, VpcId: g.VPCID, SecurityGroupType: g.Type,
		ResourceGroupId: g.ResourceGroupID, CreationTime: cloud.Timestamp(g.Created),
	}
	v.Tags.Tag = g.Tags.Views()
	return v
}

type ruleView struct { //nolint:revive // names on the wire
	SecurityGroupRuleId, Policy, Priority, IpProtocol, PortRange string
	SourceCidrIp, Ipv6SourceCidrIp, Description, Direction       string
	NicType                                                      string
}

func (e service) describeSecurityGroup(c *api.Call) (any, error) {
	g, err := e.securityGroup(c)
	if err != nil {
		return nil, err
	}
	answer := struct { //nolint:revive // names on the wire
		SecurityGroupId, SecurityGroupName, Description, VpcId, RegionId string
		InnerAccessPolicy                                                string
		Permissions                                                      struct{ Permission []ruleView }
	}{SecurityGroupId: g.ID, SecurityGroupName: g.Name, Description: g.Description, VpcId: g.VPCID, RegionId: e.Region,
		InnerAccessPolicy: "Accept"}
	answer.Permissions.Permission = viewsOfRules(g)
	return answer, nil
}

func viewsOfRules(g *cloud.SecurityGroup) []ruleView {
	views := make([]ruleView, 0, len(g.Rules))
	for _, r := range g.Rules {
		views = append(views, ruleView{
			r.ID, title(r.Policy), strconv.Itoa(r.Priority), strings.ToUpper(r.Protocol), r.PortRange, r.SourceCIDR, r.IPv6SourceCIDR, r.Description,
			"ingress", "intranet",
		})
	}
	return views
}

// title writes a policy as answers have it: Accept for accept.
func title(policy string) string { return strings.ToUpper(policy[:1]) + policy[1:] }

func readRule(p api.Params) (cloud.SecurityRule, *api.Error) {
	r := cloud.SecurityRule{
		Policy: p.Or("Policy", "accept"), Protocol: p.Str("IpProtocol"), PortRange: p.Str("PortRange"), SourceCIDR: p.Str("SourceCidrIp"),
		IPv6SourceCIDR: p.Str("Ipv6SourceCidrIp"), Priority: p.Int("Priority", 1), Description: p.Str("Description"),
	}
	switch {
	case r.Protocol == "":
		return r, api.Missing("IpProtocol")
	case r.PortRange == "":
		return r, api.Missing("PortRange")
	case r.SourceCIDR == "" && r.IPv6SourceCIDR == "":
		return r, api.Missing("SourceCidrIp")
	case !isPrefix(r.SourceCIDR, true):
		return r, api.BadRequest("InvalidSourceCidrIp.Malformed", "The address range %s is not one of IPv4.", r.SourceCIDR)
	case !isPrefix(r.IPv6SourceCIDR, false):
		return r, api.BadRequest("InvalidParam.Ipv6SourceCidrIp", "The address range %s is not one of IPv6.", r.IPv6SourceCIDR)
	}
	return r, nil
}

// isPrefix accepts an address or an address range of one IP version, and nothing at all.
func isPrefix(text string, is4 bool) bool {
	if text == "" {
		return true
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Is4() == is4
	}
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Addr().Is4() == is4
}

// sameRule compares what makes a rule: description aside.
func sameRule(a, b cloud.SecurityRule) bool {
	a.ID, b.ID, a.Description, b.Description = "", "", "", ""
	return a == b
}

// authorizeSecurityGroup ignores rules that the group has already, as the cloud does.
func (e service) authorizeSecurityGroup(c *api.Call) (any, error) {
	g, err := e.securityGroup(c)
	if err != nil {
		return nil, err
	}
	rules := slices.Clone(g.Rules)
	for _, p := range c.Objects("Permissions") {
		r, bad := readRule(p)
		if bad != nil {
			return nil, bad
		}
		if !slices.ContainsFunc(rules, func(have cloud.SecurityRule) bool { return sameRule(have, r) }) {
			r.ID = cloud.NewID("sgr")
			rules = append(rules, r)
		}
	}
	if len(rules) > rulesPerGroup {
		return nil, api.Forbidden("AuthorizationLimitExceed", "The security group %s has at most %d rules.", g.ID, rulesPerGroup)
	}
	g.Rules = rules
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

// revokeSecurityGroup ignores rules that the group does not have.
func (e service) revokeSecurityGroup(c *api.Call) (any, error) {
	g, err := e.securityGroup(c)
	if err != nil {
		return nil, err
	}
	ids := c.List("SecurityGroupRuleId")
	var revoked []cloud.SecurityRule
	for _, p := range c.Objects("Permissions") {
		r, bad := readRule(p)
		if bad != nil {
			return nil, bad
		}
		revoked = append(revoked, r)
	}
	g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(have cloud.SecurityRule) bool {
		return slices.Contains(ids, have.ID) || slices.ContainsFunc(revoked, func(r cloud.SecurityRule) bool { return sameRule(have, r) })
	})
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

func (e service) modifySecurityGroupRule(c *api.Call) (any, error) {
	g, err := e.securityGroup(c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(g.Rules, func(r cloud.SecurityRule) bool { return r.ID == c.Str("SecurityGroupRuleId") })
	if i < 0 {
		return nil, api.NotFound("InvalidSecurityGroupRuleId.NotFound", "The rule %s does not exist.", c.Str("SecurityGroupRuleId"))
	}
	have := g.Rules[i]
	r, bad := readRule(api.Params{
		"Policy": c.Or("Policy", have.Policy), "Priority": c.Or("Priority", strconv.Itoa(have.Priority)),
		"IpProtocol": c.Or("IpProtocol", have.Protocol),
		"PortRange":  c.Or("PortRange", have.PortRange), "SourceCidrIp": c.Or("SourceCidrIp", have.SourceCIDR),
		"Ipv6SourceCidrIp": c.Or("Ipv6SourceCidrIp", have.IPv6SourceCIDR), "Description": c.Or("Description", have.Description),
	})
	if bad != nil {
		return nil, bad
	}
	r.ID = have.ID
	g.Rules = slices.Clone(g.Rules)
	g.Rules[i] = r
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

func (e service) modifySecurityGroup(c *api.Call) (any, error) {
	g, err := e.securityGroup(c)
	if err != nil {
		return nil, err
	}
	g.Name, g.Description = c.Or("SecurityGroupName", g.Name), c.Or("Description", g.Description)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}
