package diff

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// openAccess makes the security group and adds rules, then joins it and what the annotation names.
func (d *differ) openAccess() {
	want, have := d.desired.Access, d.actual.Access
	if want != nil && want != have {
		var there []alicloud.SecurityRule
		if have == nil {
			d.addStep(model.Step{Op: model.OpCreateAccess, Target: model.TargetAccess, After: want.Name, Access: *want})
		} else {
			there = have.Rules
		}
		d.ruleSteps(model.OpAddRules, notIn(want.Rules, there))
	}
	join := slices.Clone(d.desired.Want.JoinGroups)
	if d.actual.LoadBalancer.ID == "" {
		return // the creation names them
	}
	s := model.Step{Op: model.OpJoin, Target: model.TargetLoadBalancer, IDs: join, After: strings.Join(join, " ")}
	if want != nil && (have == nil || !slices.Contains(d.actual.LoadBalancer.SecurityGroups, have.ID)) {
		s.Access, s.Needs, s.After = *want, []string{model.TargetAccess}, strings.TrimSpace(s.After+" "+want.Name)
	}
	if s.After != "" {
		s.Swaps = d.leavesAll()
		d.addStep(s)
	}
}

// leavesAll returns the security groups of the load balancer if it is to leave all of them, and nil otherwise. Groups of both types
// cannot be mixed, so that only then those of the other type can take their place.
func (d *differ) leavesAll() []string {
	have := d.actual.LoadBalancer.SecurityGroups
	if len(have) == 0 || len(annotation.NotIn(have, d.leavingSecurityGroups())) > 0 {
		return nil
	}
	return slices.Clone(have)
}

// leavingSecurityGroups are the security groups that the load balancer is to leave.
func (d *differ) leavingSecurityGroups() []string {
	leave := slices.Clone(d.desired.Want.LeaveGroups)
	if have := d.actual.Access; have != nil && d.desired.Access == nil && slices.Contains(d.actual.LoadBalancer.SecurityGroups, have.ID) {
		leave = append(leave, have.ID)
	}
	return leave
}

// closeAccess removes rules, leaves security groups and deletes the one for source ranges that are gone.
func (d *differ) closeAccess() {
	want, have := d.desired.Access, d.actual.Access
	if leave := d.leavingSecurityGroups(); len(leave) > 0 {
		d.addStep(model.Step{Op: model.OpLeave, Target: model.TargetLoadBalancer, Before: strings.Join(leave, " "), IDs: leave})
	}
	switch {
	case have == nil || want == have:
	case want == nil:
		d.addStep(model.Step{Op: model.OpDeleteAccess, Target: model.TargetAccess, Before: have.Name, Access: *have,
			Needs: []string{model.TargetLoadBalancer}})
	default:
		isDrop := func(r alicloud.SecurityRule) bool { return r.Drop }
		surplus := notIn(have.Rules, want.Rules)
		d.ruleSteps(model.OpRemoveRules, slices.DeleteFunc(slices.Clone(surplus), isDrop))
		// These keep others out.
		d.ruleSteps(model.OpRemoveRules, slices.DeleteFunc(surplus, func(r alicloud.SecurityRule) bool { return !r.Drop }))
	}
}

func (d *differ) ruleSteps(op model.Op, rules []alicloud.SecurityRule) {
	for chunk := range slices.Chunk(rules, alicloud.MaxRulesPerCall) {
		var texts []string
		for _, rule := range chunk {
			text := "accept "
			if rule.Drop {
				text = "drop "
			}
			texts = append(texts, text+rule.CIDR)
		}
		s := model.Step{Op: op, Target: model.TargetAccess, After: strings.Join(texts, ", "), Rules: chunk}
		if op == model.OpRemoveRules {
			s.Before, s.After = s.After, ""
		}
		d.addStep(s)
	}
}

// notIn returns the rules that have no equal in the other list.
func notIn(rules, other []alicloud.SecurityRule) []alicloud.SecurityRule {
	return slices.DeleteFunc(slices.Clone(rules), func(r alicloud.SecurityRule) bool {
		return slices.ContainsFunc(other, func(o alicloud.SecurityRule) bool {
			return o.Drop == r.Drop && o.Priority == r.Priority && strings.EqualFold(o.Protocol, r.Protocol) && o.Ports == r.Ports &&
				o.CIDR == r.CIDR
		})
	})
}
