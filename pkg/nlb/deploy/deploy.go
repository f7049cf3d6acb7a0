package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Started is a job that a step began.
type Started struct {
	Job alicloud.Job
	// Targets take no other step until the job has ended.
	Targets []string
	// Step is what the job carries out, for people; Part is what it changes.
	Step string
	Part model.Part
}

// Applier carries out one plan as far as jobs allow, and keeps the model in step with what was accepted.
type Applier struct {
	API   Writer
	Model *model.Model
	// Token makes the client token of the creation of a load balancer.
	Token func(lb alicloud.NLB) string
	// Busy reports whether a job on a target is under way.
	Busy func(target string) bool
	// Memory is what calls of all Services have shown.
	Memory *Memory

	// Jobs are those that were started.
	Jobs []Started
	// Waits says that steps wait for jobs.
	Waits bool
	// Doubts are the parts of the model that may differ from what is there.
	Doubts map[model.Part]string
	// Writes counts the calls, Progress says that the cloud accepted one.
	Writes   int
	Progress bool
	// RefusedServer says that the cloud refused a backend server, Interrupted that the plan was given up for a newer one, and
	// Uncertain that a call may or may not have taken effect.
	RefusedServer, Interrupted, Uncertain bool
	// Created says that a load balancer was created, Deleted that its deletion was accepted.
	Created, Deleted bool
	// Lost is the id of a load balancer that a call said does not exist.
	Lost string

	waiting, failed map[string]bool
	former          map[string]bool // groups that listeners stay in, by id: they were brought in line
	throttled       map[model.Op]bool
	errs            []error
}

// Run carries out the plan as far as possible: a failed or waiting step stops those that use what it is about, and no others.
func (a *Applier) Run(ctx context.Context, plan model.Plan) error {
	a.waiting, a.failed, a.former, a.throttled, a.Doubts = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[model.Op]bool{}, map[model.Part]string{}
	for i := range plan.Steps {
		if a.Interrupted || a.Lost != "" {
			break
		}
		a.try(ctx, &plan.Steps[i])
		a.meanwhile(ctx, &plan.Steps[i])
	}
	return errors.Join(a.errs...)
}

// meanwhile has the group follow the endpoints that a listener stays in, because the step on it failed or waits. Two listeners may stay in
// one group.
func (a *Applier) meanwhile(ctx context.Context, step *model.Step) {
	if len(step.Meanwhile) == 0 || a.former[step.From] || !a.failed[step.Target] && !a.waiting[step.Target] {
		return
	}
	a.former[step.From] = true
	for i := range step.Meanwhile {
		a.try(ctx, &step.Meanwhile[i])
	}
}

func (a *Applier) try(ctx context.Context, step *model.Step) {
	uses := step.Uses()
	is := func(state map[string]bool) bool {
		return slices.ContainsFunc(uses, func(t string) bool { return state[t] })
	}
	switch {
	case is(a.failed), a.throttled[step.Op]:
		a.failed[step.Target] = true
		return
	case is(a.waiting), slices.ContainsFunc(uses, a.Busy), slices.ContainsFunc(uses, a.justStarted):
		a.waiting[step.Target], a.Waits = true, true
		return
	case ctx.Err() != nil:
		a.failed[step.Target] = true
		a.errs = append(a.errs, fmt.Errorf("%s: %w", step.Op, ctx.Err()))
		return
	}
	job, err := a.do(ctx, step)
	if job != "" {
		a.Jobs = append(a.Jobs, Started{Job: job, Targets: step.Locks(), Step: step.String(), Part: step.Part()})
	}
	if err != nil {
		a.fail(step, err)
		return
	}
	klog.FromContext(ctx).V(2).Info("Applied step", "step", step.String(), "lb", a.Model.LoadBalancer.ID)
}

// justStarted reports whether a job of this plan has the target.
func (a *Applier) justStarted(target string) bool {
	return target == model.TargetLoadBalancer && (a.Created || a.Deleted) ||
		slices.ContainsFunc(a.Jobs, func(s Started) bool { return slices.Contains(s.Targets, target) })
}

// codeGroupInUse refuses to delete a group while a listener uses it: one that is about to go, or one that somebody made by hand.
const codeGroupInUse = "ResourceInUse.ServerGroup"

// again is how soon a pass follows one that learned that it did not know what is there.
const again = time.Second

func (a *Applier) fail(step *model.Step, err error) {
	a.failed[step.Target] = true
	wrapped := fmt.Errorf("%s: %w", describe(step, a.Model.LoadBalancer.ID), explain(err))
	switch {
	case errors.Is(err, alicloud.ErrInterrupted):
		a.Interrupted = true
	case alicloud.IsThrottled(err):
		a.throttled[step.Op] = true
	case errors.As(err, new(*leftOutError)):
		a.RefusedServer = true
		delete(a.failed, step.Target)
	case errors.As(err, new(*problem.WaitError)):
		// No call was made.
	case alicloud.IsBusy(err):
		// The call was refused and changed nothing: what is known stays known.
	default:
		a.doubt(step, err)
		if alicloud.IsNotFound(err) || alicloud.IsDuplicate(err) || alicloud.HasCode(err, codeGroupInUse) {
			wrapped = &problem.WaitError{Reason: wrapped.Error(), For: again} // what is there is read first
		}
	}
	a.errs = append(a.errs, wrapped)
}

// doubt notes what the failed step leaves unknown.
func (a *Applier) doubt(step *model.Step, err error) {
	a.Doubts[step.Part()] = string(step.Op) + " failed"
	a.Uncertain = a.Uncertain || alicloud.IsAmbiguous(err)
	if step.Target == model.TargetLoadBalancer && alicloud.IsNotFound(err) && step.Op != model.OpLeave && step.Op != model.OpDetach {
		a.Lost = a.Model.LoadBalancer.ID
	}
}

// describe says what a step was about, for example "create listener tcp:80 of nlb-1".
func describe(step *model.Step, id string) string {
	text := string(step.Op)
	if step.Target != model.TargetLoadBalancer && step.Target != model.TargetAccess {
		text += " " + step.Target
	}
	if id != "" {
		text += " of " + id
	}
	return text
}

// call counts a write.
func (a *Applier) call(write func() error) error {
	a.Writes++
	err := write()
	if err == nil {
		a.Progress = true
	}
	return err
}

// job counts a write that a job carries out.
func (a *Applier) job(write func() (alicloud.Job, error)) (job alicloud.Job, err error) {
	err = a.call(func() error {
		job, err = write()
		return err
	})
	return job, err
}

// explain adds what only the user can do about a refusal.
func explain(err error) error {
	if alicloud.HasCode(err, "OperationDenied.ServiceLinkedRoleNotExist") {
		return fmt.Errorf("the account has no service-linked role AliyunServiceRoleForNlb; create the first NLB in the console, or the role in RAM: %w", err)
	}
	if alicloud.HasCode(err, codeMixedGroups) {
		return fmt.Errorf("basic and advanced security groups cannot be mixed: that of loadBalancerSourceRanges is an advanced one: %w", err)
	}
	return err
}
