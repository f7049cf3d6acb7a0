package slb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// provision makes one pass over a Service that wants a CLB: the finalizer, the stages of [Reconciler.ensure], and what the Service
// shows of them.
func (r *Reconciler) provision(ctx context.Context, cached *corev1.Service) (time.Duration, error) {
	adopted := hasFinalizer(cached)
	known := r.states.of(cached).began(adopted)
	defer func() { r.states.commit(cached, known) }()
	svc, err := r.writer.change(ctx, cached, addFinalizer)
	if err != nil {
		err = fmt.Errorf("add the finalizer: %w", err)
		known.failure = r.emitUnwritten(cached, problem.ReasonFailedAddFinalizer, err)
		return 0, err
	}
	if svc == nil || !wantsLoadBalancer(r.opts.Config, svc) {
		return 0, nil // changed since the cache saw it; its event is on the way
	}
	measured := pass{ensuring(svc), time.Now()}
	turn, end := r.takeTurn(ctx, mark.ServiceName(svc), known.backoff)
	known, done, syncErr := r.ensure(turn, svc, adopted, known)
	known.backoff.waitingSince = end(syncErr)
	wait, retryLater := waitTime(syncErr)
	retryLater = retryLater && known.backoff.patient()
	measured.end(syncErr, retryLater, done.writes > 0)
	if err = r.updateStatus(ctx, known, done, syncErr, retryLater); err != nil {
		known.failure = r.emitUnwritten(svc, problem.ReasonFailedUpdateStatus, err)
		return 0, errors.Join(syncErr, err)
	}
	known.failure, known.replaced = r.emit(svc, known, done, syncErr, retryLater)
	if retryLater {
		return wait, nil
	}
	if syncErr == nil && problem.HasReason(done.problems, problem.ReasonListenerConflict) {
		known.clb.listeners.invalidate("the other owner may leave the port at any time, without any event")
	}
	return r.next(known, done, syncErr)
}

// ensured is what the stages of [Reconciler.ensure] came to.
type ensured struct {
	// service is the Service as they left it.
	service  *corev1.Service
	problems []problem.Problem
	// writes counts the calls that changed something.
	writes int
	// record is what was applied, and status what the Service is to show; nil leaves them as they are.
	record *Record
	status *corev1.LoadBalancerStatus
	// wakes are times after which the Service is due for another pass; 0 is none.
	wakes []time.Duration
}

// ensure makes the CLB of a Service as it is wanted, stage by stage. The caller holds the Service's lock and commits the state.
// adopted says that the Service may have had a CLB before this program saw it.
func (r *Reconciler) ensure(ctx context.Context, svc *corev1.Service, adopted bool, known state) (state, ensured, error) {
	params, problems := annotation.Of(svc)
	done := ensured{service: svc, problems: problems}
	unlock, err := r.lockShared(ctx, params, known.clb)
	if err != nil {
		return known, done, err
	}
	defer unlock()

	found, err := r.clb.refresh(ctx, known.request(svc, params, adopted), known.clb)
	known = known.refreshed(found, r.opts.ResyncPeriod)
	if err != nil {
		return known, done, err
	}
	if known.clb.model() == nil && len(found.unread) > 0 {
		return known, done, errors.Join(slices.Collect(maps.Values(found.unread))...) // nothing is created while anything is unknown
	}
	if err = r.clb.refuse(params); err != nil && known.clb.model() == nil {
		return known, done, err
	}
	done.problems = append(done.problems, placement(known.clb.model(), params)...)

	goal, err := r.decide(ctx, svc, params, known)
	known.cache, known.lastValid = goal.inputs.cache, goal.lastValid
	done.problems = append(done.problems, goal.problems...)
	if err != nil {
		return known, done, err
	}
	goal.plan = goal.plan.WithoutSteps(found.unread)
	known.ineffective = logIneffective(ctx, build.Ineffective(params, goal.desired), known.ineffective)

	written, intent, err := r.recordIntent(ctx, svc, *known.record, goal.planned)
	if written == nil {
		return known, done, err
	}
	known.record, done.service = &intent, written

	deployed := r.clb.deploy(ctx, svc, known.clb, goal.plan, found.drift)
	done.writes = deployed.writes
	err = errors.Join(append([]error{deployed.err}, slices.Collect(maps.Values(found.unread))...)...)
	known = known.deployed(deployed).readAgainOnceSettled(goal.plan)
	known.record, done.record = recordApply(*known.record, goal.record, deployed, known.clb.model(), err != nil)

	gates, gateErr := r.openGates(ctx, svc, goal.inputs.gates, func(address string) bool { return model.IsMember(address, goal.desired, known.clb.model()) })
	shown, addresses := r.clb.status(ctx, known.clb, goal.desired, params)
	known.clb.addresses, done.status = addresses, shown.status
	done.problems = slices.Concat(done.problems, gates.problems, shown.problems)
	done.wakes = []time.Duration{gates.wait, goal.inputs.readyGraceLeft}
	return known, done, errors.Join(err, gateErr)
}

// decided is the goal of a pass, and what it was made of.
type decided struct {
	planned
	inputs    gathered
	lastValid *annotation.Params
}

// decide gathers the inputs and plans. What an annotation says that is not accepted now, it says as it was last accepted.
func (r *Reconciler) decide(ctx context.Context, svc *corev1.Service, params annotation.Params, known state) (decided, error) {
	goal := decided{inputs: gathered{cache: known.cache}, lastValid: known.lastValid}
	clb := known.clb.model()
	params = params.WithLast(known.lastValid)
	goal.lastValid = &params
	var err error
	if goal.inputs, err = r.gather(ctx, svc, reversal(params, *known.record, clb), clb, known.cache); err != nil {
		return goal, err
	}
	goal.planned, err = r.clb.plan(goal.inputs, params, known.clb, *known.record, known.removal.reclaimed)
	return goal, err
}

// recordIntent writes to the Service the tags and domains that a plan is about to write, before it does. It returns the Service and
// the Record as they are then; the Service is nil when it is gone.
func (r *Reconciler) recordIntent(ctx context.Context, svc *corev1.Service, applied Record, goal planned) (*corev1.Service, Record, error) {
	if goal.record == nil || goal.plan.Empty() || applied.covers(goal.record.intent()) {
		return svc, applied, nil
	}
	both := applied.and(goal.record.intent())
	written, err := r.writer.change(ctx, svc, both.store())
	if err != nil {
		return nil, applied, fmt.Errorf("record what is about to be written: %w", err)
	}
	return written, both, nil
}

// recordApply returns the Record after a plan, and again what the Service is to hold of it, nil to leave that as it is.
func recordApply(applied Record, wanted *Record, done deployment, clb *model.Model, failed bool) (known, store *Record) {
	if clb == nil || wanted == nil {
		return &applied, nil
	}
	record := applied.after(*wanted, failed, done.refused).of(clb)
	return &record, &record
}

// next returns when the Service is due for another pass without any event.
func (r *Reconciler) next(known state, done ensured, syncErr error) (time.Duration, error) {
	var config *problem.ConfigError
	wait := max(time.Until(known.driftAt), time.Second)
	switch {
	case errors.As(syncErr, &config):
		// Only a change of the Service, or the pass for drift, can help: repeating does not.
		return r.opts.ResyncPeriod, nil
	case syncErr != nil:
		return 0, syncErr
	case problem.HasReason(done.problems, problem.ReasonListenerConflict):
		wait = conflictWait
	case problem.HasReason(done.problems, problem.ReasonSkipSyncBackends):
		wait = min(unresolvedWait, wait)
	case problem.HasReason(done.problems, problem.ReasonFailedSetEIPAddress):
		wait = min(eipWait, wait)
	}
	for _, sooner := range done.wakes {
		if sooner > 0 {
			wait = min(sooner, wait)
		}
	}
	return wait, nil
}
