package alicloud

import (
	"context"
	"fmt"
	"strings"
)

const (
	// securityGroupPage is the largest page of DescribeSecurityGroups by page number.
	securityGroupPage = 50
	// MaxRulesPerCall is how many rules one call takes:
	// https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-authorizesecuritygroup.
	MaxRulesPerCall = 100
	// SecurityGroupEnterprise is the advanced type of security group.
	SecurityGroupEnterprise = "enterprise"
)

// SecurityGroup is a security group of ECS.
type SecurityGroup struct {
	ID          string
	Name        string
	Description string
	VPCID       string
	// Type is "normal" or [SecurityGroupEnterprise].
	Type            string
	ResourceGroupID string
	// Tags are those that [Client.DescribeSecurityGroups] shows, and Rules the ingress rules that [Client.DescribeSecurityGroup] shows.
	Tags  []Tag
	Rules []SecurityRule
}

// SecurityRule is an ingress rule of a security group.
type SecurityRule struct {
	// ID is not sent.
	ID string
	// Drop refuses what the rule is about; a rule accepts it otherwise.
	Drop bool
	// Priority is 1 to 100; the smallest counts, and of equal ones a drop rule.
	Priority int
	// Protocol is for example "ALL", Ports then "-1/-1".
	Protocol, Ports string
	// CIDR is of IPv4 or IPv6.
	CIDR        string
	Description string
}

// DescribeSecurityGroups returns the security groups with a tag, in whatever VPC.
func (c *Client) DescribeSecurityGroups(ctx context.Context, tag Tag) ([]SecurityGroup, error) {
	in := params{}.setTags([]Tag{tag}).setInt("PageSize", securityGroupPage)
	return pages("DescribeSecurityGroups", func(g SecurityGroup) string { return g.ID }, func(number int) (page[SecurityGroup], error) {
		out := &struct {
			answer
			TotalCount     *int
			SecurityGroups struct {
				SecurityGroup []struct {
					SecurityGroupId, SecurityGroupName, Description, VpcId, SecurityGroupType, ResourceGroupId string

					Tags struct {
						Tag []struct{ TagKey, TagValue string }
					}
				}
			}
		}{answer: newAnswer()}
		if err := c.call(ctx, "DescribeSecurityGroups", productECS, in.setInt("PageNumber", number), out); err != nil {
			return page[SecurityGroup]{}, err
		}
		var found []SecurityGroup
		for _, g := range out.SecurityGroups.SecurityGroup {
			group := SecurityGroup{
				ID: g.SecurityGroupId, Name: g.SecurityGroupName, Description: g.Description, VPCID: g.VpcId, Type: g.SecurityGroupType,
				ResourceGroupID: g.ResourceGroupId,
			}
			for _, t := range g.Tags.Tag {
				group.Tags = append(group.Tags, Tag{Key: t.TagKey, Value: t.TagValue})
			}
			found = append(found, group)
		}
		return page[SecurityGroup]{out.answer, found, out.TotalCount}, nil
	})
}

// DescribeSecurityGroup returns a security group with its ingress rules. The answer has no tags.
func (c *Client) DescribeSecurityGroup(ctx context.Context, id string) (SecurityGroup, error) {
	out := &struct {
		answer
		SecurityGroupId, SecurityGroupName, Description, VpcId string

		Permissions struct {
			Permission []struct {
				SecurityGroupRuleId, Policy, IpProtocol, PortRange, SourceCidrIp, Ipv6SourceCidrIp, Description string

				Priority int
			}
		}
	}{answer: newAnswer()}
	if err := c.call(ctx, "DescribeSecurityGroupAttribute", productECS, params{"SecurityGroupId": id, "Direction": "ingress"},
		out); err != nil {
		return SecurityGroup{}, err
	}
	if out.SecurityGroupId != id {
		return SecurityGroup{}, out.unusable("DescribeSecurityGroupAttribute", "asked for %q, got %q", id, out.SecurityGroupId)
	}
	group := SecurityGroup{ID: id, Name: out.SecurityGroupName, Description: out.Description, VPCID: out.VpcId}
	for _, p := range out.Permissions.Permission {
		group.Rules = append(group.Rules, SecurityRule{
			ID: p.SecurityGroupRuleId, Drop: strings.EqualFold(p.Policy, "drop"), Priority: p.Priority, Protocol: strings.ToUpper(p.IpProtocol),
			Ports: p.PortRange, CIDR: p.SourceCidrIp + p.Ipv6SourceCidrIp, Description: p.Description,
		})
	}
	return group, nil
}

// CreateSecurityGroup makes a security group. For the token see [Client.CreateNLB].
func (c *Client) CreateSecurityGroup(ctx context.Context, g SecurityGroup, token string) (id string, err error) {
	in := params{"ClientToken": token, "VpcId": g.VPCID}.set("SecurityGroupName", g.Name).set("Description", g.Description).
		set("SecurityGroupType", g.Type).set("ResourceGroupId", g.ResourceGroupID).setTags(g.Tags)
	out := &struct {
		answer
		SecurityGroupId string
	}{answer: newAnswer()}
	if err := c.call(ctx, "CreateSecurityGroup", productECS, in, out); err != nil {
		return "", err
	}
	if out.SecurityGroupId == "" {
		return "", out.unusable("CreateSecurityGroup", "the answer has no SecurityGroupId")
	}
	return out.SecurityGroupId, nil
}

// DeleteSecurityGroup removes a security group that nothing has joined.
func (c *Client) DeleteSecurityGroup(ctx context.Context, id string) error {
	return c.ecsWrite(ctx, "DeleteSecurityGroup", params{"SecurityGroupId": id})
}

// AddSecurityRules adds ingress rules, at most [MaxRulesPerCall]; those that the group has already are ignored.
func (c *Client) AddSecurityRules(ctx context.Context, id string, rules []SecurityRule) error {
	in := params{"SecurityGroupId": id}
	for i := range rules {
		rules[i].set(in, fmt.Sprintf("Permissions.%d.", i+1))
	}
	return c.ecsWrite(ctx, "AuthorizeSecurityGroup", in)
}

// RemoveSecurityRules removes ingress rules, at most [MaxRulesPerCall], by their ids or, where one has none, by what they say; those
// that the group lacks are ignored.
func (c *Client) RemoveSecurityRules(ctx context.Context, id string, rules []SecurityRule) error {
	in, ids := params{"SecurityGroupId": id}, make([]string, 0, len(rules))
	for i := range rules {
		if rules[i].ID != "" {
			ids = append(ids, rules[i].ID)
		}
	}
	if len(ids) == len(rules) {
		return c.ecsWrite(ctx, "RevokeSecurityGroup", in.setList("SecurityGroupRuleId", ids))
	}
	for i := range rules {
		rules[i].set(in, fmt.Sprintf("Permissions.%d.", i+1))
	}
	return c.ecsWrite(ctx, "RevokeSecurityGroup", in)
}

func (r *SecurityRule) set(in params, at string) {
	policy, source := "accept", "SourceCidrIp"
	if r.Drop {
		policy = "drop"
	}
	if strings.Contains(r.CIDR, ":") {
		source = "Ipv6SourceCidrIp"
	}
	in.set(at+"Policy", policy).setInt(at+"Priority", r.Priority).set(at+"IpProtocol", r.Protocol).set(at+"PortRange", r.Ports).
		set(at+source, r.CIDR).set(at+"Description", r.Description)
}

// ecsWrite runs an action whose answer holds nothing of interest.
func (c *Client) ecsWrite(ctx context.Context, action string, in params) error {
	return c.call(ctx, action, productECS, in, plainAnswer())
}
