package slb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

var errMemberQuota = errors.New("the quota of members of the CLB is used up")

// applier carries out one plan. It writes only, and keeps model in step with every write that succeeded, so that the
// next difference needs no reading.
type applier struct {
	api   writer
	model *Model
	// token makes the client token of the creation of a CLB.
	token func(lb alicloud.LoadBalancer) string

	failed    map[string]bool // targets with a failed step
	refused   map[Op]bool     // operations that the cloud refused: nothing of them was done
	throttled map[Op]bool     // operations that the cloud refuses until the next minute
	deferred  []Step          // additions that wait for removals to make room
	followUp  []Step          // what the step just carried out leaves to be done at once
	errs      []error
	writes    int
	// doubt says that model may differ from what is there: it must be read before the next difference.
	doubt bool
	// refusedServer says that a call failed because of a server in it.
	refusedServer bool
	// drift says that the plan only repairs what somebody changed in the cloud.
	drift bool
	// interrupted says that the plan was given up for one that is made anew.
	interrupted bool
	// lost is the id of a CLB that a call said does not exist.
	lost string
	// charge is the internet charge type that was asked for, if any was.
	charge pendingCharge
}

func newApplier(api writer, model *Model, token func(alicloud.LoadBalancer) string) *applier {
	return &applier{api: api, model: model, token: token, failed: map[string]bool{}, refused: map[Op]bool{}, throttled: map[Op]bool{}}
}

// run carries out the plan as far as possible: a failed step stops those that build on it and no others.
func (a *applier) run(ctx context.Context, plan Plan) error {
	for _, step := range plan.Steps {
		a.try(ctx, step)
		for len(a.followUp) > 0 {
			next := a.followUp[0]
			a.followUp = a.followUp[1:]
			a.try(ctx, next)
		}
		if a.lost != "" {
			break
		}
	}
	late := a.deferred
	a.deferred = nil
	for _, step := range late {
		if a.try(ctx, step); len(a.deferred) > 0 {
			a.fail(step, errMemberQuota)
			a.deferred = nil
		}
	}
	return errors.Join(a.errs...)
}

// try carries out a step unless one that it builds on failed.
func (a *applier) try(ctx context.Context, step Step) {
	switch {
	case a.interrupted:
		return
	case a.failed[step.key()], a.failed[targetLoadBalancer], slices.ContainsFunc(step.needs, func(t string) bool { return a.failed[t] }):
		a.failed[step.key()] = true
		return
	case a.throttled[step.Op]:
		a.failed[step.key()] = true // trying again would only keep the worker waiting for the next minute
		return
	case ctx.Err() != nil:
		a.failed[step.key()] = true
		a.errs = append(a.errs, fmt.Errorf("%s: %w", step.Op, ctx.Err()))
		return
	}
	err := a.do(ctx, step)
	if err == nil {
		klog.FromContext(ctx).V(2).Info("Wrote", "step", step.String(), "lb", a.model.LoadBalancer.ID)
		return
	}
	if step.Op == OpAddBackends && alicloud.IsQuota(err) {
		a.deferred = append(a.deferred, step)
		return
	}
	a.fail(step, err)
}

func (a *applier) fail(step Step, err error) {
	a.failed[step.key()] = true
	a.refused[step.Op] = !alicloud.IsAmbiguous(err)
	a.errs = append(a.errs, fmt.Errorf("%s: %w", a.describe(step), explainRefusal(step, a.model.LoadBalancer, err)))
	switch {
	case errors.Is(err, alicloud.ErrInterrupted):
		a.interrupted = true
	case alicloud.IsThrottled(err):
		a.throttled[step.Op] = true
	case alicloud.IsBusy(err):
		// The call was refused and changed nothing: what is known stays known.
	default:
		a.doubt = true
	}
	if alicloud.HasCode(err, codeLoadBalancerGone) {
		a.lost = a.model.LoadBalancer.ID
	}
}

// describe says what a step was about, for example "create listener tcp:80 of lb-1".
func (a *applier) describe(step Step) string {
	text := string(step.Op)
	if step.Target != targetLoadBalancer {
		text += " " + step.Target
	}
	if id := a.model.LoadBalancer.ID; id != "" {
		text += " of " + id
	}
	return text
}

// call counts a write.
func (a *applier) call(err error) error {
	a.writes++
	return err
}

// createLoadBalancer tries the vSwitches in turn: one without free addresses is no reason to fail while another has some.
func (a *applier) createLoadBalancer(ctx context.Context, step Step) error {
	lb := step.loadBalancer
	candidates := step.vswitchIDs
	if lb.AddressType != alicloud.AddressIntranet {
		candidates = []string{""}
	} else if len(candidates) == 0 {
		return &ConfigError{Field: "vswitchid", Reason: "no vSwitch is known for a CLB of address type intranet; set it in the cloud config or by the annotation " + string(VSwitchID)}
	}
	var err error
	for _, id := range candidates {
		lb.VSwitchID = id
		var created alicloud.LoadBalancer
		created, err = a.api.CreateLoadBalancer(ctx, lb, a.token(lb))
		a.writes++
		if err == nil {
			a.model.LoadBalancer = created
			return nil
		}
		if !alicloud.HasCode(err, codeVSwitchFull) {
			return err
		}
	}
	return err
}

func (a *applier) deleteLoadBalancer(ctx context.Context, _ Step) error {
	err := a.call(a.api.DeleteLoadBalancer(ctx, a.model.LoadBalancer.ID))
	if err != nil && !alicloud.IsNotFound(err) {
		return err
	}
	return nil
}
