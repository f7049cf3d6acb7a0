package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Applier carries out one plan. It writes only, and keeps model in step with every write that succeeded, so that the
// next difference needs no reading.
type Applier struct {
	api       Writer
	model     *model.Model
	failed    map[string]bool   // targets with a failed step
	refused   map[model.Op]bool // operations that the cloud refused: nothing of them was done
	denied    map[string]bool   // targets with a step that the cloud refused for what it asks, and those that build on them
	throttled map[model.Op]bool // operations that the cloud refuses until the next minute
	deferred  []model.Step      // additions that wait for removals to make room
	followUp  []model.Step      // what the step just carried out leaves to be done at once
	former    map[string]bool   // groups that listeners stay in, by id: they were brought in line
	late      bool              // the deferred steps are under way: nothing makes room any more
	// left are the backend servers that the step under way leaves out, and refusedInARow counts those that the cloud refused since it
	// last accepted one.
	left          []refusedServer
	refusedInARow int
	lacking       map[string]bool // groups that lack servers which the cloud refused, by id
	// most is how many backend servers the Service can have in all its groups together, see [Applier.Limit], and noRoom why no more.
	most   int
	noRoom error
	// targets are what the plan is to do, and short the operations whose quotas it has used up, see [shortage].
	targets map[model.Op]uint64
	short   map[model.Op]error
	memory  *Memory
	errs    []error
	// Turn makes the call that creates a CLB when it is the Service's turn, see [refusal.Creations]. nil makes it at once.
	Turn func(create func() error) error
	// Create makes that call, see pkg/service.
	Create func(ctx context.Context, parameters any, send func(token string) (id string, err error)) error
	// Moves says that the CLB is one that a Service moves to: how often that is tried is not decided here.
	Moves bool
	// Writes counts the calls, Progress says that the cloud accepted one.
	Writes   int
	Progress bool
	// Doubts are the parts of model that may differ from what is there: they must be read before the next difference.
	Doubts map[model.Part]string
	// RefusedServer says that a call failed because of a server in it.
	RefusedServer bool
	// Exhausted are instances that are backend servers as many times as they may be.
	Exhausted []string
	// Interrupted says that the plan was given up for one that is made anew.
	Interrupted bool
	// Lost is the id of a CLB that a call said does not exist.
	Lost string
	// NotCreated is why the cloud refuses to create the CLB, nil where it did not, and where it may do so in a moment.
	NotCreated error
	// Untagged are the keys of tags that were removed.
	Untagged []string
	// Charge is the internet charge type that was asked for, if any was.
	Charge PendingCharge
}

// New returns an Applier. memory is what earlier ones have learned, observed the CLB as it is.
func New(api Writer, memory *Memory, observed *model.Model) *Applier {
	return &Applier{
		api: api, memory: memory, model: observed, most: math.MaxInt, noRoom: ErrNoRoom,
		failed: map[string]bool{}, former: map[string]bool{}, denied: map[string]bool{}, refused: map[model.Op]bool{},
		throttled: map[model.Op]bool{}, short: map[model.Op]error{}, lacking: map[string]bool{}, Doubts: map[model.Part]string{},
	}
}

// Limit has no call made for more backend servers in all groups together: the CLB has no room for them. What is left out fails with
// [ErrNoRoom].
func (a *Applier) Limit(most int) { a.most = most }

// Run carries out the plan as far as possible: a failed step stops those that build on it and no others.
func (a *Applier) Run(ctx context.Context, plan model.Plan) error {
	a.targets = targetsOf(plan)
	for _, step := range plan.Steps {
		a.tryStep(ctx, step)
		a.followMeanwhile(step)
		for len(a.followUp) > 0 {
			next := a.followUp[0]
			a.followUp = a.followUp[1:]
			a.tryStep(ctx, next)
		}
		if a.Lost != "" {
			break
		}
	}
	late := a.deferred
	a.deferred = nil
	for _, step := range late {
		a.late = true
		a.tryStep(ctx, step)
	}
	return errors.Join(a.errs...)
}

// followMeanwhile has the group follow the endpoints that the listener of a failed step stays in. Two listeners may stay in one group.
func (a *Applier) followMeanwhile(step model.Step) {
	if len(step.Meanwhile) == 0 || !a.failed[step.Key()] || a.former[step.Meanwhile[0].GroupID] {
		return
	}
	a.former[step.Meanwhile[0].GroupID] = true
	a.followUp = append(a.followUp, step.Meanwhile...)
}

// tryStep carries out a step unless one that it builds on failed.
func (a *Applier) tryStep(ctx context.Context, step model.Step) {
	if a.failed[model.TargetAccess] {
		var left bool
		if step, left = step.WithoutAccess(); !left {
			return
		}
	}
	switch {
	case a.Interrupted:
		return
	case a.failed[step.Key()], a.failed[model.TargetLoadBalancer], slices.ContainsFunc(step.Needs, func(t string) bool { return a.failed[t] }):
		a.blockDependents(step)
		if slices.ContainsFunc(step.Needs, func(t string) bool { return a.denied[t] }) {
			a.denyStep(step)
		}
		return
	case a.throttled[step.Op]:
		a.blockDependents(step) // trying again would only keep the worker waiting for the next minute
		return
	case ctx.Err() != nil:
		a.blockDependents(step)
		a.errs = append(a.errs, fmt.Errorf("%s: %w", step.Op, ctx.Err()))
		return
	}
	if err := a.shortOf(step.Op); err != nil {
		a.failStep(step, remembered{err})
		return
	}
	if err := a.refusedLately(&step); err != nil {
		a.failStep(step, err)
		return
	}
	a.refusedInARow = 0
	id := a.model.LoadBalancer.ID
	err := a.doStep(ctx, step)
	a.noteAttempt(id, &step, err)
	a.noteQuota(step, err)
	if step.Op == model.OpAddBackends && LacksRoom(err) && !a.late {
		a.left, a.deferred = nil, append(a.deferred, step)
		return
	}
	a.reportRefused(step)
	if err == nil {
		klog.FromContext(ctx).V(2).Info("Applied step", "step", step.String(), "lb", a.model.LoadBalancer.ID)
		return
	}
	if IsOverQuota(err) {
		err = fmt.Errorf("the quota of backend servers of the CLB is used up: %w", err)
	}
	a.failStep(step, err)
}

// blockDependents keeps steps from being tried that build on this one.
func (a *Applier) blockDependents(step model.Step) {
	for _, key := range step.Keys() {
		a.failed[key] = true
	}
}

func (a *Applier) denyStep(step model.Step) {
	for _, key := range step.Keys() {
		a.denied[key] = true
	}
}

// Denied returns the targets that the cloud refuses, with those that it refused before: a plan that ends early has not tried all.
func (a *Applier) Denied(before map[string]bool) map[string]bool {
	all := maps.Clone(a.denied)
	maps.Copy(all, before)
	return all
}

func (a *Applier) failStep(step model.Step, err error) {
	if step.Op != model.OpTag || !isTagQuota(err) {
		a.blockDependents(step)
	}
	if alicloud.IsLocked(err) { // whatever else it is asked for, it refuses, too
		a.failed[model.TargetLoadBalancer] = true
		a.Doubts[model.PartLoadBalancer] = "it is locked or stopped"
	}
	a.refused[step.Op] = !alicloud.IsAmbiguous(err)
	if refusesListener(err) && !alicloud.IsThrottled(err) {
		a.denyStep(step)
	}
	a.errs = append(a.errs, fmt.Errorf("%s: %w", a.describeStep(step), explainRefusal(step, a.model.LoadBalancer, err)))
	switch {
	case errors.Is(err, alicloud.ErrInterrupted):
		a.Interrupted = true
	case alicloud.IsThrottled(err):
		a.throttled[step.Op] = true
	case errors.As(err, &remembered{}), errors.Is(err, ErrNoRoom), refusal.IsHeld(err), errors.As(err, new(*problem.WaitError)):
		// No call was made.
	case alicloud.IsBusy(err):
		// The call was refused and changed nothing: what is known stays known.
	default:
		parts := step.Parts()
		if alicloud.IsQuota(err) {
			parts = parts[:1] // what the cloud counts is of the same kind: nothing else needs reading
		}
		for _, name := range parts {
			a.Doubts[name] = string(step.Op) + " failed"
		}
	}
	a.noteCreation(step, err)
	if alicloud.HasCode(err, model.CodeLoadBalancerGone) {
		a.Lost = a.model.LoadBalancer.ID
	}
}

// noteCreation notes that the cloud refuses to create the CLB.
func (a *Applier) noteCreation(step model.Step, err error) {
	if step.Op == model.OpCreateLoadBalancer && refusal.OfCreation(err) {
		a.NotCreated = explainRefusal(step, a.model.LoadBalancer, err)
	}
}

// describeStep says what a step was about, for example "create listener tcp:80 of lb-1".
func (a *Applier) describeStep(step model.Step) string {
	text := string(step.Op)
	if step.Target != model.TargetLoadBalancer {
		text += " " + step.Target
	}
	if id := a.model.LoadBalancer.ID; id != "" {
		text += " of " + id
	}
	return text
}

func (a *Applier) createLoadBalancer(ctx context.Context, step model.Step) error {
	create := func() error { return a.createInOneOf(ctx, step) }
	if a.Turn != nil {
		return a.Turn(create)
	}
	return create()
}

// createInOneOf tries the vSwitches in turn: one without free addresses is no reason to fail while another has some.
func (a *Applier) createInOneOf(ctx context.Context, step model.Step) error {
	lb := step.LoadBalancer
	candidates := step.VSwitchIDs
	if lb.AddressType != alicloud.AddressIntranet {
		candidates = []string{""}
	} else if len(candidates) == 0 {
		return &problem.ConfigError{Field: "vswitchid",
			Reason: "no vSwitch is known for a CLB of address type intranet; set it in the cloud config or by the annotation " +
				annotation.VSwitchID.Key()}
	}
	var err error
	for _, id := range candidates {
		lb.VSwitchID = id
		var created alicloud.LoadBalancer
		err = a.Create(ctx, lb, func(token string) (string, error) {
			failure := a.callOnce(ctx, func() (err error) {
				created, err = a.api.CreateLoadBalancer(ctx, lb, token)
				return err
			})
			return created.ID, failure
		})
		if err == nil {
			a.model.LoadBalancer = created
			return nil
		}
		if !alicloud.IsVSwitchFull(err) {
			return err
		}
	}
	return err
}

// deleteLoadBalancer: that the CLB does not exist is one answer, which proves nothing; the next pass asks in two ways.
func (a *Applier) deleteLoadBalancer(ctx context.Context, _ model.Step) error {
	id := a.model.LoadBalancer.ID
	if err := a.callOnce(ctx, func() error { return a.api.DeleteLoadBalancer(ctx, id) }); err != nil {
		return err
	}
	a.memory.forgetCLB(id)
	a.memory.Creations.Freed()
	return nil
}
