package deploy

import (
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// An executor is everything that carrying out a step of one kind takes.
type executor struct {
	// priority is the step's among those of all Services that wait for the same action.
	priority alicloud.Priority
	// run makes the calls of a step and brings the model in line with their effect.
	run func(a *Applier, ctx context.Context, step model.Step) error
}

var executors = map[model.Op]executor{
	model.OpCreateLoadBalancer: {alicloud.PriorityListener, (*Applier).createLoadBalancer},
	model.OpDeleteLoadBalancer: {alicloud.PriorityListener, (*Applier).deleteLoadBalancer},

	model.OpCreateAccess:  {alicloud.PriorityListener, (*Applier).createAccess},
	model.OpAddEntries:    {alicloud.PriorityListener, (*Applier).addEntries},
	model.OpRemoveEntries: {alicloud.PriorityListener, (*Applier).removeEntries},
	model.OpDeleteAccess:  {alicloud.PriorityListener, (*Applier).deleteAccess},

	model.OpCreateGroup:     {alicloud.PriorityBackend, (*Applier).createGroup},
	model.OpAddBackends:     {alicloud.PriorityBackend, (*Applier).addBackends},
	model.OpSetBackends:     {alicloud.PriorityBackend, (*Applier).setBackends},
	model.OpReplaceBackends: {alicloud.PriorityRemoval, (*Applier).replaceBackends},
	model.OpRemoveBackends:  {alicloud.PriorityRemoval, (*Applier).removeBackends},
	model.OpDeleteGroup:     {alicloud.PriorityListener, (*Applier).deleteGroup},

	model.OpReplaceListener: {alicloud.PriorityListener, (*Applier).replaceListener},

	model.OpCreateListener: {alicloud.PriorityListener, (*Applier).createListener},
	model.OpSetListener:    {alicloud.PriorityListener, (*Applier).setListener},
	model.OpStartListener:  {alicloud.PriorityListener, (*Applier).startListener},
	model.OpDeleteListener: {alicloud.PriorityListener, (*Applier).deleteListener},

	model.OpCreateExtension: {alicloud.PriorityListener, (*Applier).createExtension},
	model.OpSetExtension:    {alicloud.PriorityListener, (*Applier).setExtension},
	model.OpDeleteExtension: {alicloud.PriorityListener, (*Applier).deleteExtension},

	model.OpSetName:         {alicloud.PriorityAttribute, (*Applier).setName},
	model.OpSetProtection:   {alicloud.PriorityAttribute, (*Applier).setProtection},
	model.OpSetModification: {alicloud.PriorityAttribute, (*Applier).setModification},
	model.OpSetCharge:       {alicloud.PriorityAttribute, (*Applier).setCharge},
	model.OpSetSpec:         {alicloud.PriorityAttribute, (*Applier).setSpec},
	model.OpSetInternet:     {alicloud.PriorityAttribute, (*Applier).setInternet},
	model.OpTag:             {alicloud.PriorityAttribute, (*Applier).tagCLB},
	model.OpUntag:           {alicloud.PriorityAttribute, (*Applier).untagCLB},
}

// doStep makes the calls of a step in its place among those that wait.
func (a *Applier) doStep(ctx context.Context, step model.Step) error {
	by, ok := executors[step.Op]
	if !ok {
		return fmt.Errorf("operation %q is not known", step.Op)
	}
	waiting := alicloud.WaitingOf(ctx)
	waiting.Priority, waiting.Target = priorityOf(by, step), step.GroupID
	if a.portIsVacant(step) {
		waiting = urgentWait(waiting)
	}
	return by.run(a, alicloud.WithWaiting(ctx, waiting), step)
}

// priorityOf of a step. What only repairs drift can wait, but not a backend that no longer answers: one that gets the weight 0
// is as urgent as one that is removed. One that works and only gives its place to another one is not.
func priorityOf(by executor, step model.Step) alicloud.Priority {
	switch {
	case step.Op == model.OpSetBackends && slices.ContainsFunc(step.New, func(b alicloud.Backend) bool { return b.Weight == 0 }),
		by.priority == alicloud.PriorityRemoval && !step.Balances:
		return alicloud.PriorityRemoval
	case step.Repairs, step.Op == model.OpSetBackends && onlyShares(step):
		return alicloud.PriorityDrift
	case step.Balances:
		return alicloud.PriorityBackend
	default:
		return by.priority
	}
}

// onlyShares reports whether a step changes how much traffic backend servers take, and not whether they take any. That can wait for
// whatever brings some in or takes some out.
func onlyShares(step model.Step) bool {
	idle := func(b alicloud.Backend) bool { return b.Weight == 0 }
	return !slices.ContainsFunc(step.Old, idle) && !slices.ContainsFunc(step.New, idle)
}
