package nlb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// stepsTo returns the steps to a desired model. A listener that the cloud refused with the servers of its group, as the NLB may have no
// room for all of them, is created with an empty group, to which nothing sends, so that nothing is lost. What fits is added once there is
// the listener. If the cloud refuses it all the same, another quota is used up. A listener that leaves another group for it gets some of
// the servers, as it serves.
func (n nlb) stepsTo(svc *corev1.Service, desired *model.Model) model.Plan {
	owner, actual := n.ownerOf(svc, n.observed), n.comparedModel(desired)
	wanted, emptied := *desired, sets.New[string]()
	wanted.Groups = slices.Clone(desired.Groups)
	for i := range wanted.Groups {
		want := &wanted.Groups[i]
		have := actual.Matching(want)
		if have == nil || !n.isIdle(have, owner) {
			continue
		}
		if most, crowded := n.memory.Crowded(have.ID); crowded {
			want.Servers, want.Draining = fewestServers(want.Servers, most), nil
			emptied.Insert(have.ID)
		}
	}
	wanted.Former = slices.Clone(desired.Former)
	for i := range wanted.Former {
		if old := &wanted.Former[i]; n.memory.GivesWay(old.ID) {
			old.Servers, old.Draining = nil, nil
		}
	}
	plan := diff.Diff(&wanted, actual, owner)
	var first, others []model.Step
	for i := range plan.Steps {
		if step := plan.Steps[i]; step.Op == model.OpRemoveServers && emptied.Has(step.Group.ID) {
			first = append(first, step)
		} else {
			others = append(others, step)
		}
	}
	plan.Steps = slices.Concat(first, others)
	return plan
}

// fewestServers returns so many of the servers, always the same ones.
func fewestServers(servers []alicloud.NLBServer, most int) []alicloud.NLBServer {
	return servers[:min(len(servers), most)]
}

// isIdle reports whether nothing sends to a group of the Service's own, in which all servers are ours.
func (n nlb) isIdle(group *model.Group, owner mark.Owner) bool {
	isOthers := func(s alicloud.NLBServer) bool { return s.Description != group.Name && !owner.OwnsNLB(s.Description) }
	return n.groups.Trusted() && n.listeners.Trusted() && !group.Foreign && len(group.LoadBalancers) == 0 && len(n.Leaving) == 0 &&
		!n.hasListenerTo(group.ID) &&
		!slices.ContainsFunc(group.Servers, isOthers)
}

// hasListenerTo reports whether a listener of the NLB sends to a group.
func (n nlb) hasListenerTo(group string) bool {
	return slices.ContainsFunc(n.listeners.Value, func(l model.Listener) bool { return model.Text(l.ServerGroupID) == group })
}

// learnFull notes how many servers an NLB has that is full. Of one that Services share it is not known before each of them has had a pass,
// and of an existing one never.
func (n nlb) learnFull(svc *corev1.Service) bool {
	if n.config.Quotas.Of(quota.ServersPerNLB, n.ID()).Source == quota.Refusal {
		return false // others are giving servers up by now: what they have left is less than the quota
	}
	total, all := n.allServers(svc)
	if !all || total == 0 {
		return false
	}
	n.config.Quotas.Learn(quota.ServersPerNLB, n.ID(), total)
	return true
}

// allServers returns how many servers the NLB has that count for its quota, as far as that is known. all says that none are missing.
func (n nlb) allServers(svc *corev1.Service) (total int, all bool) {
	if n.Group.IsZero() {
		return n.behindListeners(svc), !n.Reused()
	}
	n.noteServers(svc)
	return n.shared.Servers(n.Group, n.ID())
}
