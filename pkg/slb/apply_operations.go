package slb

import (
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// An executor is everything that carrying out a step of one kind takes.
type executor struct {
	// priority is the step's among those of all Services that wait for the same action.
	priority alicloud.Priority
	// run makes the calls of a step and brings the model in line with their effect.
	run func(a *applier, ctx context.Context, step Step) error
}

var executors = map[Op]executor{
	OpCreateLoadBalancer: {alicloud.PriorityListener, (*applier).createLoadBalancer},
	OpDeleteLoadBalancer: {alicloud.PriorityListener, (*applier).deleteLoadBalancer},

	OpCreateAccess:  {alicloud.PriorityListener, (*applier).createAccess},
	OpAddEntries:    {alicloud.PriorityListener, (*applier).addEntries},
	OpRemoveEntries: {alicloud.PriorityListener, (*applier).removeEntries},
	OpDeleteAccess:  {alicloud.PriorityListener, (*applier).deleteAccess},

	OpCreateGroup:     {alicloud.PriorityMember, (*applier).createGroup},
	OpAddBackends:     {alicloud.PriorityMember, (*applier).addBackends},
	OpSetBackends:     {alicloud.PriorityMember, (*applier).setBackends},
	OpReplaceBackends: {alicloud.PriorityRemoval, (*applier).replaceBackends},
	OpRemoveBackends:  {alicloud.PriorityRemoval, (*applier).removeBackends},
	OpDeleteGroup:     {alicloud.PriorityListener, (*applier).deleteGroup},

	OpCreateListener: {alicloud.PriorityListener, (*applier).createListener},
	OpSetListener:    {alicloud.PriorityListener, (*applier).setListener},
	OpStartListener:  {alicloud.PriorityListener, (*applier).startListener},
	OpDeleteListener: {alicloud.PriorityListener, (*applier).deleteListener},

	OpCreateExtension: {alicloud.PriorityListener, (*applier).createExtension},
	OpSetExtension:    {alicloud.PriorityListener, (*applier).setExtension},
	OpDeleteExtension: {alicloud.PriorityListener, (*applier).deleteExtension},

	OpSetName:         {alicloud.PriorityAttribute, (*applier).setName},
	OpSetProtection:   {alicloud.PriorityAttribute, (*applier).setProtection},
	OpSetModification: {alicloud.PriorityAttribute, (*applier).setModification},
	OpSetCharge:       {alicloud.PriorityAttribute, (*applier).setCharge},
	OpSetSpec:         {alicloud.PriorityAttribute, (*applier).setSpec},
	OpSetInternet:     {alicloud.PriorityAttribute, (*applier).setInternet},
	OpTag:             {alicloud.PriorityAttribute, (*applier).tag},
	OpUntag:           {alicloud.PriorityAttribute, (*applier).untag},
}

// do makes the calls of a step in its place among those that wait.
func (a *applier) do(ctx context.Context, step Step) error {
	executor, ok := executors[step.Op]
	if !ok {
		return fmt.Errorf("operation %q is not known", step.Op)
	}
	waiting := alicloud.WaitingOf(ctx)
	waiting.Priority = a.priority(executor, step)
	return executor.run(a, alicloud.WithWaiting(ctx, waiting), step)
}

// priority of a step. What only repairs drift can wait, but not a backend that no longer answers: one that gets the weight 0
// is as urgent as one that is removed.
func (a *applier) priority(executor executor, step Step) alicloud.Priority {
	switch {
	case step.Op == OpSetBackends && slices.ContainsFunc(step.new, func(b alicloud.Backend) bool { return b.Weight == 0 }),
		executor.priority == alicloud.PriorityRemoval:
		return alicloud.PriorityRemoval
	case a.drift:
		return alicloud.PriorityDrift
	default:
		return executor.priority
	}
}
