package nlb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// withEmptied has a listener created with an empty group that the cloud refused with the servers of its group, as the NLB may have no room for all of them. Nothing
// sends to such a group, so that nothing is lost. What fits is added once there is the listener. If the cloud refuses it all the same, another quota is used up.
func (n nlb) withEmptied(steps []model.Step) []model.Step {
	crowded := map[string]*model.Group{}
	for i := range steps {
		if id := model.Text(steps[i].Listener.ServerGroupID); steps[i].Op == model.OpCreateListener && n.memory.Crowded(id) {
			if group := n.model().GroupByID(id); group != nil && n.isIdle(group) {
				crowded[id] = group
			}
		}
	}
	if len(crowded) == 0 {
		return steps
	}
	var changed []model.Step
	for i := range steps {
		step := steps[i]
		isOfServers := slices.Contains([]model.Op{model.OpAddServers, model.OpUpdateServers, model.OpRemoveServers}, step.Op)
		if isOfServers && crowded[step.Group.ID] != nil {
			continue
		}
		if step.Op == model.OpCreateListener {
			if group := crowded[model.Text(step.Listener.ServerGroupID)]; group != nil && len(group.Servers) > 0 {
				changed = append(changed, model.Step{
					Op: model.OpRemoveServers, Target: model.TargetGroup(group.Name), Before: model.ServersText(group.Servers), Group: group.NLBGroup, Servers: group.Servers,
				})
			}
		}
		changed = append(changed, step)
	}
	return changed
}

// isIdle reports whether nothing sends to a group of the Service's own.
func (n nlb) isIdle(group *model.Group) bool {
	return !group.Foreign && len(group.LoadBalancers) == 0 && len(n.leaving) == 0 && !n.listens(group.ID)
}

// listens reports whether a listener of the NLB sends to a group.
func (n nlb) listens(group string) bool {
	return slices.ContainsFunc(n.listeners.Value, func(l model.Listener) bool { return model.Text(l.ServerGroupID) == group })
}

// learn notes how many servers an NLB has that is full. Of one that Services share it is not known before each of them has had a pass, and of an existing one never.
func (n nlb) learn(svc *corev1.Service) bool {
	if n.config.Quotas.Of(quota.ServersPerNLB, n.ID()).Source == quota.Refusal {
		return false // others are giving servers up by now: what they have left is less than the quota
	}
	total, all := 0, !n.Reused()
	if n.group.IsZero() {
		for i := range n.groups.Value {
			if group := &n.groups.Value[i]; n.listens(group.ID) {
				total += len(group.Servers)
			}
		}
	} else {
		n.hold(svc)
		total, all = n.shared.Servers(n.group, n.ID())
	}
	if !all || total == 0 {
		return false
	}
	n.config.Quotas.Learn(quota.ServersPerNLB, n.ID(), total)
	return true
}
