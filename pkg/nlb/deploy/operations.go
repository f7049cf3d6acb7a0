package deploy

import (
	"context"
	"fmt"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// An executor is what carrying out a step of one kind takes.
type executor struct {
	// priority is the step's among those of all Services that wait for the same action.
	priority alicloud.Priority
	// run makes the calls of a step and brings the model in line with their effect.
	run func(a *Applier, ctx context.Context, step *model.Step) (alicloud.Job, error)
}

var executors = map[model.Op]executor{
	model.OpCreateAccess: {alicloud.PriorityListener, (*Applier).createAccess},
	model.OpAddRules:     {alicloud.PriorityListener, (*Applier).addRules},
	model.OpRemoveRules:  {alicloud.PriorityListener, (*Applier).removeRules},
	model.OpDeleteAccess: {alicloud.PriorityListener, (*Applier).deleteAccess},

	model.OpCreateLoadBalancer: {alicloud.PriorityListener, (*Applier).createLoadBalancer},
	model.OpDeleteLoadBalancer: {alicloud.PriorityListener, (*Applier).deleteLoadBalancer},
	model.OpSetAttributes:      {alicloud.PriorityAttribute, (*Applier).setAttributes},
	model.OpSetZones:           {alicloud.PriorityAttribute, (*Applier).setZones},
	model.OpSetAddressType:     {alicloud.PriorityAttribute, (*Applier).setAddressType},
	model.OpSetIPv6:            {alicloud.PriorityAttribute, (*Applier).setIPv6},
	model.OpJoin:               {alicloud.PriorityListener, (*Applier).joinSecurityGroups},
	model.OpLeave:              {alicloud.PriorityListener, (*Applier).leaveSecurityGroups},
	model.OpAttach:             {alicloud.PriorityAttribute, (*Applier).attachPackage},
	model.OpDetach:             {alicloud.PriorityAttribute, (*Applier).detachPackage},
	model.OpSetProtection:      {alicloud.PriorityAttribute, (*Applier).setProtection},
	model.OpTag:                {alicloud.PriorityAttribute, (*Applier).tagNLB},
	model.OpUntag:              {alicloud.PriorityAttribute, (*Applier).untagNLB},

	model.OpCreateGroup:   {alicloud.PriorityBackend, (*Applier).createGroup},
	model.OpUpdateGroup:   {alicloud.PriorityListener, (*Applier).updateGroup},
	model.OpAddServers:    {alicloud.PriorityBackend, (*Applier).addServers},
	model.OpUpdateServers: {alicloud.PriorityBackend, (*Applier).updateServers},
	model.OpRemoveServers: {alicloud.PriorityRemoval, (*Applier).removeServers},
	model.OpDeleteGroup:   {alicloud.PriorityListener, (*Applier).deleteGroup},
	model.OpTagGroup:      {alicloud.PriorityAttribute, (*Applier).tagGroup},
	model.OpUntagGroup:    {alicloud.PriorityAttribute, (*Applier).untagGroup},

	model.OpCreateListener:     {alicloud.PriorityListener, (*Applier).createListener},
	model.OpUpdateListener:     {alicloud.PriorityListener, (*Applier).updateListener},
	model.OpStartListener:      {alicloud.PriorityListener, (*Applier).startListener},
	model.OpDeleteListener:     {alicloud.PriorityListener, (*Applier).deleteListener},
	model.OpAddCertificates:    {alicloud.PriorityListener, (*Applier).addCertificates},
	model.OpRemoveCertificates: {alicloud.PriorityListener, (*Applier).removeCertificates},
}

// doStep makes the calls of a step in its place among those that wait.
func (a *Applier) doStep(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	by, ok := executors[step.Op]
	if !ok {
		return "", fmt.Errorf("operation %q is not known", step.Op)
	}
	waiting := alicloud.WaitingOf(ctx)
	waiting.Priority = by.priority
	if step.Op == model.OpCreateListener {
		if _, vacant := a.vacatedListener(&step.Listener); vacant { // nothing serves the port
			waiting.Priority, waiting.Interrupt = alicloud.PriorityRemoval, nil
		}
	}
	if step.Part() == model.PartGroups {
		waiting.Target = step.Group.ID
	}
	return by.run(a, alicloud.WithWaiting(ctx, waiting), step)
}
