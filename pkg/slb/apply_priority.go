package slb

import (
	"context"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// priority of a step among those of all Services that wait for the same action.
func (s *Step) priority() alicloud.Priority {
	switch s.Op {
	case OpRemoveBackends, OpReplaceBackends:
		return alicloud.PriorityRemoval
	case OpSetBackends:
		for _, member := range s.new {
			if member.Weight == 0 {
				return alicloud.PriorityRemoval
			}
		}
		return alicloud.PriorityMember
	case OpCreateGroup, OpAddBackends:
		return alicloud.PriorityMember
	case OpSetName, OpSetProtection, OpSetModification, OpSetCharge, OpSetSpec, OpSetInternet, OpTag, OpUntag:
		return alicloud.PriorityAttribute
	default:
		return alicloud.PriorityListener
	}
}

// withPriority returns the context for the calls of a step. What only repairs drift can wait, but not a backend that is
// gone.
func (a *applier) withPriority(ctx context.Context, step *Step) context.Context {
	waiting := alicloud.WaitingOf(ctx)
	waiting.Priority = step.priority()
	if a.drift && waiting.Priority != alicloud.PriorityRemoval {
		waiting.Priority = alicloud.PriorityDrift
	}
	return alicloud.WithWaiting(ctx, waiting)
}
