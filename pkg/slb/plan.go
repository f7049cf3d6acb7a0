package slb

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// plan leads from what is known of a CLB to what is wanted.
type plan struct {
	model.Plan
	clb clb
	// desired is nil for a removal.
	desired *model.Model
	// unwanted says that the plan deletes a CLB in whose place the Service gets another one.
	unwanted bool
}

// unwantedPoll is how soon a Service gets another CLB in the place of one that it does not ask for.
const unwantedPoll = time.Second

var _ driver.Plan = plan{}

// Steps implements driver.Plan.
func (p plan) Steps() []driver.Step {
	var steps []driver.Step
	for _, step := range p.Plan.Steps {
		steps = append(steps, driver.Step{Op: string(step.Op), Target: step.Target, Before: step.Before, After: step.After, Text: step.String()})
	}
	return steps
}

// Deploy implements driver.Plan.
func (p plan) Deploy(ctx context.Context, svc *corev1.Service, create driver.Create) driver.Deployment {
	p.clb.desired = p.desired
	if !p.Has(model.OpCreateLoadBalancer) {
		p.clb.answers.Creations.Leave(svc.UID)
	}
	if p.Empty() {
		p.clb.shared.WakeOnConflict(p.clb.Group, svc, p.clb.ID(), p.Problems)
		p.clb.noteServers(svc)
		return driver.Deployment{Balancer: p.clb, Registered: p.registeredAfter(p.clb), Problems: p.reportKept()}
	}
	observed := p.clb.wholeModel()
	if observed == nil {
		observed = &model.Model{Access: p.clb.access.Value}
	}
	applier := deploy.New(p.clb.api, &p.clb.answers, observed)
	applier.Create, applier.Moves = create, p.clb.From != ""
	if most, known := p.clb.mostServers(svc); known {
		applier.Limit(most)
	}
	applier.Turn = func(create func() error) error {
		return p.clb.answers.Creations.Create(creatorOf(svc), p.clb.config.Quotas.Limit(Product.BalancerQuota).Value, create)
	}
	err := applier.Run(ctx, p.Plan)
	if !p.OnlyBackends() {
		p.clb.readings.Drop(p.clb.ID())
	}
	if applier.NotCreated != nil && p.clb.From != "" {
		delete(applier.Doubts, model.PartLoadBalancer) // there is none, for sure
	}
	if applier.Lost != "" {
		err = p.clb.missing.Unproven(applier.Lost)
	}
	after := p.clb.withKnown(p.clb.afterDeployment(deployment{model: observed, doubts: applier.Doubts, lost: applier.Lost}))
	if err == nil && p.Has(model.OpDeleteLoadBalancer) && p.unwanted {
		after.observed = observedAfterDeletion(p.clb.observed)
		err = &problem.WaitError{Reason: "the CLB that was created is not what the Service asks for by now, and was deleted", For: unwantedPoll}
	}
	after.refused = applier.Denied(p.clb.refused)
	if applier.Charge.Asked != "" {
		after.charge = applier.Charge
	}
	after.noteInGroup(svc, p.Plan)
	after.learnFull(err)
	goesBack, err := after.noteCreation(svc, p.Plan, applier.NotCreated, err)
	return driver.Deployment{
		Balancer: after, Writes: applier.Writes, Progress: applier.Progress, Refused: applier.RefusedAnnotations(), Untagged: applier.Untagged,
		Uncertain:      len(applier.Doubts) > 0,
		RefusedBackend: applier.RefusedServer, Interrupted: applier.Interrupted, Lost: applier.Lost, Shared: p.sharedGroups(),
		Exhausted: applier.Exhausted,
		GoesBack:  goesBack, Registered: p.registeredAfter(after), Problems: p.reportKept(), Err: err,
	}
}

// reportKept is what a removal leaves in the cloud. Problems of other plans are known before they are carried out.
func (p plan) reportKept() []problem.Problem {
	if p.desired != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Problems), func(found problem.Problem) bool { return found.Reason != problem.ReasonKeptInUse })
}

// creatorOf is the Service as one that needs a CLB.
func creatorOf(svc *corev1.Service) refusal.Creator {
	return refusal.Creator{UID: svc.UID, Name: mark.ServiceName(svc)}
}

// sharedGroups returns the ids of the groups on an existing CLB whose backend servers the plan changes.
func (p plan) sharedGroups() []string {
	var ids []string
	if !p.clb.Reused() {
		return nil
	}
	steps := slices.Clone(p.Plan.Steps)
	for i := range p.Plan.Steps {
		steps = append(steps, p.Plan.Steps[i].Meanwhile...)
	}
	for i := range steps {
		switch step := &steps[i]; step.Op {
		case model.OpAddBackends, model.OpSetBackends, model.OpReplaceBackends, model.OpRemoveBackends:
			ids = append(ids, step.GroupID)
		}
	}
	return ids
}

// registeredAfter returns whether the address of a pod gets traffic in every group that is to have it.
func (p plan) registeredAfter(after clb) func(address string) bool {
	return func(address string) bool { return model.IsRegistered(address, p.desired, after.wholeModel()) }
}

// deployment is what came of a plan, as far as it changes what is known of a CLB.
type deployment struct {
	// model is the CLB afterwards.
	model *model.Model
	// doubts are the parts that a failed call may or may not have changed, with the reason.
	doubts map[model.Part]string
	// lost is the id of a CLB that a call said does not exist.
	lost string
}
