package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// Started is a job that a step began.
type Started struct {
	Job alicloud.Job
	// Targets take no other step until the job has ended.
	Targets []string
	// Step is what the job carries out, for people; Work names it for [Memory], and Part is what it changes.
	Step string
	Work Work
	Part model.Part
	// Creates says that the target is there only if the job succeeds.
	Creates bool
}

// Applier carries out one plan as far as jobs allow, and keeps the model in step with what was accepted.
type Applier struct {
	API   Writer
	Model *model.Model
	// Busy reports whether a job on a target is under way.
	Busy func(target string) bool
	// Memory is what calls of all Services have shown.
	Memory *Memory
	// MostServers is how many servers the Service may have behind its listeners, as far as that is known.
	MostServers int
	// Turn makes the call that creates an NLB when it is the Service's turn, see [refusal.Creations].
	Turn func(create func() error) error
	// Create makes that call, see pkg/service.
	Create func(ctx context.Context, parameters any, send func(token string) (id string, err error)) error
	// Held returns why work waits whose jobs failed, nil for other work.
	Held func(Work) error

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
	// Exhausted are instances that the cloud refused one by one because a quota is used up: their own one, or one of the group or of the NLB.
	Exhausted []string
	// Full says that the load balancer is known to have as many servers as it may have.
	Full bool
	// Created says that a load balancer was created, Deleted that its deletion was accepted.
	Created, Deleted bool
	// Lost is the id of a load balancer that a call said does not exist.
	Lost string
	// NotCreated is why the cloud refuses to create the load balancer, nil where it did not, and where it may do so in a moment.
	NotCreated error
	// Refused are the targets that the cloud refuses to create, with those that it refused before.
	Refused map[string]bool
	// Problems are what the author of the Service should know of steps without which the plan went on.
	Problems []problem.Problem

	waiting, failed map[string]bool
	rest            []model.Step      // what of the plan is to be done yet
	refused         map[model.Op]bool // settings of the load balancer that the cloud did not take
	closed          bool              // the cloud refuses the security groups without which no port opens
	ungranted       bool              // the cloud refuses rules for the security group
	former          map[string]bool   // groups that listeners stay in, by id: they were brought in line
	lacking         map[string]error  // targets of groups that lack servers which were to come, with the reason
	throttled       map[model.Op]bool
	errs            []error
}

// Run carries out the plan as far as possible: a failed or waiting step stops those that use what it is about, and no others.
func (a *Applier) Run(ctx context.Context, plan model.Plan) error {
	a.waiting, a.failed, a.former, a.throttled, a.Doubts = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[model.Op]bool{}, map[model.Part]string{}
	a.refused, a.closed, a.ungranted, a.lacking = map[model.Op]bool{}, false, false, map[string]error{}
	if a.Refused = maps.Clone(a.Refused); a.Refused == nil {
		a.Refused = map[string]bool{}
	}
	a.forgetOccupied()
	a.endExchanges(plan)
	for a.rest = slices.Clone(plan.Steps); len(a.rest) > 0 && !a.Interrupted && a.Lost == ""; {
		step := a.rest[0]
		a.rest = a.rest[1:]
		a.tryStep(ctx, &step)
		a.followMeanwhile(ctx, &step)
	}
	return errors.Join(a.errs...)
}

// followMeanwhile has the group follow the endpoints that a listener stays in, because the step on it failed or waits. Two listeners may
// stay in one group.
func (a *Applier) followMeanwhile(ctx context.Context, step *model.Step) {
	if len(step.Meanwhile) == 0 || a.former[step.From] || !a.failed[step.Target] && !a.waiting[step.Target] {
		return
	}
	a.former[step.From] = true
	for i := range step.Meanwhile {
		a.tryStep(ctx, &step.Meanwhile[i])
	}
}

// tryStep carries out a step, and reports whether it did.
func (a *Applier) tryStep(ctx context.Context, step *model.Step) bool {
	uses := step.Uses()
	is := func(state map[string]bool) bool {
		return slices.ContainsFunc(uses, func(t string) bool { return state[t] })
	}
	switch {
	case is(a.failed) && !a.onlyRevokes(step) && !a.leavesAllTheSame(step), a.throttled[step.Op],
		slices.ContainsFunc(reliesOn(step), func(op model.Op) bool { return a.refused[op] }):
		if settings := withoutMove(step); settings != nil {
			a.tryStep(ctx, settings)
		}
		a.skipStep(step)
		return false
	case a.holdBack(ctx, step):
		return false
	case is(a.waiting), slices.ContainsFunc(uses, a.Busy), slices.ContainsFunc(uses, a.justStarted):
		a.waiting[step.Target], a.Waits = true, true
		return false
	case ctx.Err() != nil:
		a.stopDependents(step, ctx.Err())
		a.errs = append(a.errs, fmt.Errorf("%s: %w", step.Op, ctx.Err()))
		return false
	}
	job, err := a.attempt(ctx, step)
	for alicloud.IsQuota(err) && a.makesRoom(ctx, step) {
		if a.justStarted(step.Target) {
			a.waiting[step.Target], a.Waits = true, true
			return false
		}
		job, err = a.doStep(ctx, step)
	}
	a.noteStarted(step, job)
	if err != nil {
		a.failStep(step, err)
		if refusedForNow(err) {
			a.giveBack(ctx, step, err)
		}
		return false
	}
	if job == "" {
		delete(a.Refused, step.Target)
	}
	klog.FromContext(ctx).V(2).Info("Applied step", "step", step.String(), "lb", a.Model.LoadBalancer.ID)
	return true
}

func (a *Applier) noteStarted(step *model.Step, job alicloud.Job) {
	if job != "" {
		a.Jobs = append(a.Jobs,
			Started{Job: job, Targets: step.Locks(), Step: step.String(), Work: Work{step.Op, step.Target}, Part: step.Part(),
				Creates: isCreation(step)})
	}
}

// leavesAllTheSame reports whether servers leave a group although others could not come: what is gone leaves whatever becomes of others.
// While nothing else takes the traffic, they stay, see [Applier.removeServers].
func (a *Applier) leavesAllTheSame(step *model.Step) bool {
	return step.Op == model.OpRemoveServers && a.lacking[step.Target] != nil && !slices.ContainsFunc(step.Needs, func(t string) bool {
		return a.failed[t]
	})
}

// isCreation reports whether a step creates a listener or a group.
func isCreation(step *model.Step) bool {
	return step.Op == model.OpCreateListener || step.Op == model.OpCreateGroup
}

// opensPorts reports whether a step prepares or joins the security groups without which no port opens.
func opensPorts(step *model.Step) bool {
	return step.Op == model.OpJoin || step.Op == model.OpCreateAccess || step.Op == model.OpAddRules
}

// skipStep leaves out a step that relies on one that failed. A listener that waits for security groups which the cloud refuses is refused,
// too.
func (a *Applier) skipStep(step *model.Step) {
	a.stopDependents(step, nil)
	if step.Op == model.OpCreateListener && a.closed && a.refused[model.OpJoin] {
		a.Refused[step.Target] = true
	}
}

// holdBack leaves out a step whose jobs failed: while such a job is under way, what it locks takes no other step, and none would ever have
// its turn. Where it was to take the place of a listener, that one comes back.
func (a *Applier) holdBack(ctx context.Context, step *model.Step) bool {
	err := a.Held(Work{step.Op, step.Target})
	if err == nil {
		if err = a.waitsToExchange(step); err == nil {
			return false
		}
	} else {
		a.giveBack(ctx, step, err)
	}
	if step.Op != model.OpRemoveServers {
		a.stopDependents(step, err)
	}
	a.closed = a.closed || opensPorts(step)
	a.errs = append(a.errs, a.rememberedError(step, err))
	if step.Op == model.OpCreateListener && !slices.ContainsFunc(step.Locks(), func(t string) bool {
		return a.waiting[t] || a.Busy(t) || a.justStarted(t)
	}) {
		job, _ := a.putBack(ctx, &step.Listener, err) //nolint:errcheck // the next pass tries again
		a.noteStarted(step, job)
	}
	return true
}

// stopDependents keeps the steps from being carried out that rely on one that was not. On a setting of the load balancer no port and no
// group relies: what the cloud does not take of an annotation stops nothing else. While an operation locks the load balancer, it takes no
// other step either. Servers that cannot leave keep no others from coming.
func (a *Applier) stopDependents(step *model.Step, err error) {
	if step.Op == model.OpAddServers && err != nil && !alicloud.IsNotFound(err) && !alicloud.IsBusy(err) {
		a.lacking[step.Target] = err
	}
	if step.Op == model.OpRemoveServers && isRefusal(err) {
		return
	}
	isSetting := step.Op != model.OpCreateLoadBalancer && step.Op != model.OpDeleteLoadBalancer
	if step.Target == model.TargetLoadBalancer && isSetting && a.Model.LoadBalancer.ID != "" && !alicloud.IsBusy(err) {
		a.refused[step.Op] = true
		return
	}
	a.failed[step.Target] = true
}

// reliesOn are the settings of the load balancer that a step relies on. Without the security groups that it is to have, the load balancer
// neither leaves those that it has nor opens a port.
func reliesOn(step *model.Step) []model.Op {
	switch step.Op {
	case model.OpLeave, model.OpCreateListener:
		return []model.Op{model.OpJoin}
	case model.OpDeleteListener:
		if step.Group.Name != "" { // for another one
			return []model.Op{model.OpJoin}
		}
	case model.OpDeleteAccess:
		return []model.Op{model.OpJoin, model.OpLeave}
	case model.OpAttach:
		return []model.Op{model.OpDetach, model.OpSetAddressType}
	case model.OpUntag:
		return []model.Op{model.OpTag, model.OpSetProtection}
	case model.OpDeleteLoadBalancer:
		return []model.Op{model.OpSetProtection}
	}
	return nil
}

// justStarted reports whether a job of this plan has the target.
func (a *Applier) justStarted(target string) bool {
	return target == model.TargetLoadBalancer && (a.Created || a.Deleted) ||
		slices.ContainsFunc(a.Jobs, func(s Started) bool { return slices.Contains(s.Targets, target) })
}

// again is how soon a pass follows one that learned that it did not know what is there.
const again = time.Second

// noteRefusal notes what the cloud refuses for a while: a listener, a group, or the security groups without which no port opens.
func (a *Applier) noteRefusal(step *model.Step, err error) {
	if isCreation(step) && isRefusal(err) {
		a.Refused[step.Target] = true
	}
	a.closed = a.closed || opensPorts(step) && (isRefusal(err) || alicloud.IsNotFound(err))
	a.ungranted = a.ungranted || step.Op == model.OpAddRules && isRefusal(err)
}

func (a *Applier) failStep(step *model.Step, err error) {
	if step.Optional && (isRefusal(err) || alicloud.IsNotFound(err)) {
		a.Problems = append(a.Problems, problem.Newf(problem.ReasonLoadBalancerKept, "%s (%s) was refused, and is left out: %v",
			describeStep(step, a.Model.LoadBalancer.ID), step.After, alicloud.Lasting(err)))
		return
	}
	a.stopDependents(step, err)
	a.noteRefusal(step, err)
	wrapped := fmt.Errorf("%s: %w", describeStep(step, a.Model.LoadBalancer.ID), explainRefusal(step, err))
	if step.Op == model.OpCreateLoadBalancer && refusal.OfCreation(err) {
		a.NotCreated = wrapped
	}
	switch {
	case errors.Is(err, alicloud.ErrInterrupted):
		a.Interrupted = true
	case alicloud.IsThrottled(err):
		a.throttled[step.Op] = true
	case errors.As(err, new(*leftOutError)):
		a.RefusedServer = true
		delete(a.failed, step.Target)
	case errors.As(err, new(*problem.WaitError)), errors.As(err, new(known)), refusal.IsHeld(err):
		// No call was made, or what is there is known all the same.
	case errors.As(wrapped, new(*problem.RefusedError)):
		a.noteDoubt(step, err)
	case step.Op == model.OpDeleteGroup && alicloud.HasCode(err, codeGroupInUse):
		a.Doubts[model.PartGroups], a.Doubts[model.PartListeners] = codeGroupInUse, codeGroupInUse // somebody else's listener may have come
	case alicloud.IsBusy(err):
		// The call was refused and changed nothing: what is known stays known.
	default:
		a.noteDoubt(step, err)
		if alicloud.IsNotFound(err) || alicloud.IsDuplicate(err) {
			wrapped = &problem.WaitError{Reason: wrapped.Error(), For: again, Err: err} // what is there is read first
		}
	}
	a.errs = append(a.errs, wrapped)
}

// noteDoubt notes what the failed step leaves unknown.
func (a *Applier) noteDoubt(step *model.Step, err error) {
	a.Doubts[step.Part()] = string(step.Op) + " failed"
	a.Uncertain = a.Uncertain || alicloud.IsAmbiguous(err)
	if alicloud.IsNLBNotFound(err) {
		a.Lost = a.Model.LoadBalancer.ID
	}
}

// describeStep says what a step was about, for example "create listener tcp:80 of nlb-1".
func describeStep(step *model.Step, id string) string {
	text := string(step.Op)
	if step.Target != model.TargetLoadBalancer && step.Target != model.TargetAccess {
		text += " " + step.Target
	}
	if id != "" {
		text += " of " + id
	}
	return text
}

// callOnce counts a write.
func (a *Applier) callOnce(write func() error) error {
	a.Writes++
	err := write()
	if err == nil {
		a.Progress = true
	}
	return err
}

// startJob counts a write that a job carries out.
func (a *Applier) startJob(write func() (alicloud.Job, error)) (job alicloud.Job, err error) {
	err = a.callOnce(func() error {
		job, err = write()
		return err
	})
	return job, err
}

// explainRefusal adds what only the user can do about a refusal.
func explainRefusal(step *model.Step, err error) error {
	if named := namedGroups(step); len(named) > 0 && alicloud.HasCode(err, codeNoGroup) {
		return &problem.RefusedError{Err: err, Problem: problem.Newf(problem.ReasonInvalidAnnotation,
			"%s: %s names a security group that does not exist in the region; accepted: IDs of security groups of the VPC",
			annotation.SecurityGroupIDs, problem.Value(strings.Join(named, ",")))}
	}
	if alicloud.HasCode(err, "OperationDenied.ServiceLinkedRoleNotExist") {
		return fmt.Errorf("the account has no service-linked role AliyunServiceRoleForNlb; create the first NLB in the console, or the role in RAM: %w", err)
	}
	if alicloud.HasCode(err, codeMixedGroups) {
		return fmt.Errorf("basic and advanced security groups cannot be mixed: that of loadBalancerSourceRanges is an advanced one: %w", err)
	}
	return err
}

// namedGroups are the security groups of the annotation with which a step creates the load balancer, or which the load balancer joins.
func namedGroups(step *model.Step) []string {
	switch step.Op {
	case model.OpCreateLoadBalancer:
		return step.LoadBalancer.SecurityGroups
	case model.OpJoin:
		return step.IDs
	}
	return nil
}
