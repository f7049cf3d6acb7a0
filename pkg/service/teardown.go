package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// tearDown removes the load balancer, then the finalizer.
func (r *Reconciler) tearDown(ctx context.Context, svc *corev1.Service, held *locks) (time.Duration, error) {
	known := r.stateOf(svc)
	if known.removal.released {
		return 0, nil // the cache has not seen it yet
	}
	defer func() { r.states.commitState(svc, known) }()
	by := r.opts.pausedBy(svc)
	if by != "" && r.endsPause(ctx, svc) {
		by = ""
	}
	if known = known.afterPause(by); by != "" {
		return r.holdRemoval(ctx, svc, known.engine.Product(), by)
	}
	measured := measurePass(passDelete, known.engine.Product())
	turn, end := r.takeTurn(ctx, mark.ServiceName(svc), known.backoff)
	turn = alicloud.WithReason(turn, causeDeletion)
	known, done, err := r.removeFromCloud(turn, svc, known, held)
	r.noteOutcome(svc, known, true, ensured{planned: err == nil || !r.traffic.isNew(svc)}, err)
	known.backoff.waitingSince = end(err)
	if err != nil && ctx.Err() != nil {
		return 0, err // shutting down is no failure
	}
	wait, retryLater := failure.WaitTime(err)
	retryLater = retryLater && known.backoff.isPatient()
	measured.endPass(err, retryLater, true)
	switch {
	case err != nil && retryLater:
		behind.noteWaiting(mark.ServiceName(svc), known.engine.Product())
		return wait, nil
	case err != nil:
		behind.noteUnsynced(mark.ServiceName(svc), lag{known.engine.Product().Name, problem.ReasonCleanFailed}, time.Now())
		known.failure = failure.Signature(err)
		r.emitFailure(svc, problem.ReasonCleanFailed, known.failure, err)
		return 0, err
	}
	r.emitKept(ctx, svc, done)
	known.engine.Released(svc.UID)
	if _, err = r.writer.changeService(ctx, svc, func(svc *corev1.Service) {
		removeOurs(svc, known.engine.Product(), r.opts.isForeign(svc))
	}); err != nil {
		err = fmt.Errorf("remove the finalizer: %w", err)
		known.failure = r.emitUnwritten(svc, problem.ReasonFailedRemoveFinalizer, err)
		return 0, err
	}
	known.failure, known.removal.released = "", true
	r.forgetUse(svc.UID)
	r.uses.dropService(mark.ServiceName(svc))
	r.traffic.forget(mark.ServiceName(svc))
	behind.noteSynced(mark.ServiceName(svc))
	r.events.Retain(events.Of(svc))
	r.emitRemoved(svc, known.engine.Product().Name, done)
	return 0, nil
}

// emitKept reports that a load balancer stays that a Service has left, or that is gone: nobody else hears of it.
func (r *Reconciler) emitKept(ctx context.Context, svc *corev1.Service, done driver.Removal) {
	if done.Kept == "" {
		return
	}
	klog.FromContext(ctx).Info("A load balancer stays that its last Service does not use any more", "reason", done.Kept)
	r.events.Emit(events.Of(svc), events.Event{
		Object: svc, Type: corev1.EventTypeWarning, Reason: problem.ReasonLoadBalancerKept, Message: done.Kept, Outcome: done.Kept,
	})
}

func (r *Reconciler) emitRemoved(svc *corev1.Service, product string, done driver.Removal) {
	switch {
	case done.ID == "", done.Kept != "" && done.Reused:
	case done.Preserved:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeWarning, problem.ReasonPreservedOnDelete,
			"%s %s is kept with its listeners, as the annotation %s requests",
			product, done.ID, annotation.PreserveOnDelete)
	case done.Reused:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonCleaned,
			"Removed this Service's listeners and server groups from %s %s", product, done.ID)
	default:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonCleaned, "Deleted %s %s", product, done.ID)
	}
}

// removeFromCloud tears down what the Service has in the cloud. It is a success when there is nothing. The caller holds the locks and
// commits the state. A panic is an error.
func (r *Reconciler) removeFromCloud(
	ctx context.Context, svc *corev1.Service, known state, held *locks,
) (after state, done driver.Removal, err error) {
	defer func() {
		if lost := panicAsError(ctx, recover()); lost != nil {
			after, done, err = known.afterPanic(), driver.Removal{}, lost
		}
	}()
	if svc, known, err = r.settleCreation(ctx, svc, known); err != nil {
		return known, driver.Removal{}, err
	}
	known, left := r.leaveBalancers(ctx, svc, known, held)
	if left != nil && !driver.IsUnread(left) {
		return known, driver.Removal{}, left
	}
	known, done, err = r.removeFromPlace(ctx, svc, known, held)
	return known, done, errors.Join(err, left)
}

// removeFromPlace tears down what the Service has where it is now.
func (r *Reconciler) removeFromPlace(
	ctx context.Context, svc *corev1.Service, known state, held *locks,
) (after state, done driver.Removal, err error) {
	params, _ := known.engine.Params(svc)
	known.balancer, err = r.readLocked(ctx, svc, params, held, known.balancer, func(balancer driver.Balancer) (driver.Balancer, error) {
		return balancer.RefreshForRemoval(ctx, svc, known.record)
	})
	if err != nil {
		return known, driver.Removal{}, err
	}
	if known.balancer.ID() == "" {
		known, err = r.removeLeftovers(ctx, svc, known)
		return known, driver.Removal{ID: known.removal.of, Reused: known.removal.reused, Kept: known.removal.kept}, err
	}
	known, removal, err := r.removeFrom(ctx, svc, known, held)
	if err == nil && removal.Reused && !removal.Preserved {
		// What one answer lacks would stay on the load balancer for good once the Service is released.
		known.balancer = known.balancer.Invalidate("what is left of the Service on it is to be read once more")
		if known.balancer, err = known.balancer.RefreshForRemoval(ctx, svc, known.record); err == nil && known.balancer.ID() != "" {
			known, removal, err = r.removeFrom(ctx, svc, known, held)
		}
	}
	if err != nil {
		return known, removal, err
	}
	var leftovers bool
	if known.balancer, leftovers = known.balancer.Removed(removal); !leftovers {
		return known, removal, nil
	}
	known, err = r.removeLeftovers(ctx, svc, known)
	return known, removal, err
}

// removeFrom removes what is known to be on the load balancer.
func (r *Reconciler) removeFrom(ctx context.Context, svc *corev1.Service, known state, held *locks) (state, driver.Removal, error) {
	removal, err := known.balancer.PlanRemoval(svc, known.record)
	known.removal.of, known.removal.reused = removal.ID, removal.Reused
	if !removal.Reused {
		known.removal.kept = removal.Kept
	}
	if err != nil {
		return known, removal, err
	}
	deployed := deployPlan(ctx, svc, known.engine.Product(), removal.Plan, noteNothing)
	r.emitEach(svc, deployed.Problems)
	r.doubtOthers(svc, held, deployed)
	return known.afterDeployment(deployed), removal, deployed.OutcomeError()
}

// removeLeftovers removes what outlives the load balancer.
func (r *Reconciler) removeLeftovers(ctx context.Context, svc *corev1.Service, known state) (state, error) {
	balancer, plan, err := known.balancer.PlanLeftovers(ctx, svc)
	known.balancer = balancer
	if err != nil {
		return known, err
	}
	deployed := deployPlan(ctx, svc, known.engine.Product(), plan, noteNothing)
	r.emitEach(svc, deployed.Problems)
	return known.afterDeployment(deployed), deployed.OutcomeError()
}
