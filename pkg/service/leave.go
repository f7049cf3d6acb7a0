package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
)

// maxLeaving is how many places a Service leaves in a while, where the load balancer of a group counts as two: its id and the mark. Of
// more, it leaves all at once: whoever edits the annotation again and again would use up the quota of the account with one Service.
const maxLeaving = 8

// afterMove returns the state of a Service whose status shows its load balancer, and after what time it is to leave the one before, 0 for
// none. Clients go on to use the address that they know for a while, which begins anew with each move: otherwise the second place would be
// left as soon as the Service has moved again. Where the Service showed these addresses before this pass, [ConditionMoving] says since when.
func (s state) afterMove(svc *corev1.Service, shown corev1.LoadBalancerStatus, grace time.Duration) (state, time.Duration) {
	if !s.isLeaving(svc) {
		s.movedAt, s.leaveAt, s.leaving = time.Time{}, time.Time{}, nil
		return s, 0
	}
	places := s.balancer.Recorded(driver.Record{}).Leaving
	switch {
	case s.movedAt.IsZero():
		s.movedAt = movedAt(svc, shown, time.Now())
	case !driver.ContainsAll(s.leaving, places):
		s.movedAt = time.Now()
	}
	if s.leaveAt = s.movedAt.Add(grace); len(places) > maxLeaving {
		s.leaveAt = time.Now()
	}
	s.leaving = places
	return s, max(time.Until(s.leaveAt), 2*failure.AtOnce) // passes at once would follow each other until the grace is over
}

// isLeaving reports whether the Service has something at a place that it leaves.
func (s state) isLeaving(svc *corev1.Service) bool {
	mover, ok := s.balancer.(driver.Mover)
	return ok && len(mover.Left(svc)) > 0
}

// moveGrace returns how long the Service stays at the place that it leaves: as long as it may, while nobody knows what its author wants.
func (s state) moveGrace(usual time.Duration) time.Duration {
	switch {
	case s.lastValid == nil:
		return usual
	case s.lastValid.Refused(annotation.MoveGrace):
		return waits.MovedLongest
	}
	return s.lastValid.Duration(annotation.MoveGrace, usual)
}

// leaveAfterMove removes what the Service has on load balancers that it has left, once its status has shown the new one for a while. It
// returns after what time it is to be called again, 0 for never.
func (r *Reconciler) leaveAfterMove(
	ctx context.Context, svc *corev1.Service, shown corev1.LoadBalancerStatus, known state, held *locks,
) (state, time.Duration, error) {
	known, wait := known.afterMove(svc, shown, known.moveGrace(r.opts.MoveGrace))
	if wait == 0 || time.Now().Before(known.leaveAt) {
		return known, wait, nil
	}
	known, err := r.leaveBalancers(ctx, svc, known, held)
	if stored := r.storeLeft(ctx, svc, &known); err == nil {
		err = stored
	}
	return known, failure.AtOnce, err // what was in use there may go now
}

// showAddresses returns what the Service is to show. While not all of its ports are served at its new place, it shows the old one, unless
// that is gone: an address that answers nobody is worse than one that serves a part. A Service that is served nowhere would otherwise never
// leave what is gone, and keep what it needs for that. What it shows there follows the endpoints: left is what came of that. done is what
// came of the plan for its new place.
func (r *Reconciler) showAddresses(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known state, held *locks, in driver.Inputs, done driver.Deployment,
) (after state, shown driver.Shown, left driver.Deployment) {
	shown = known.balancer.Status(ctx, params)
	known.balancer = shown.Balancer
	if !shown.Elsewhere && shown.Status != nil {
		return known, shown, driver.Deployment{Registered: registeredEverywhere}
	}
	if !done.GoesBack { // if it goes back there, the next pass follows
		left.Registered = registeredEverywhere
		for _, old := range followersOf(known.balancer, svc, driver.Stuck) {
			known, left = r.followOne(ctx, svc, params, known, held, in, old)
		}
	}
	if !shown.Elsewhere || left.Balancer != nil && left.Balancer.ID() != "" { // there is nothing at the new place yet, or the old one is there
		return known, shown, left
	}
	known, wait := r.forgetGone(ctx, svc, params, known, held)
	shown = known.balancer.Status(ctx, params)
	if shown.Elsewhere && wait > 0 && (shown.Wake == 0 || wait < shown.Wake) {
		shown.Wake = wait
	}
	known.balancer = shown.Balancer
	return known, shown, left
}

// registeredEverywhere is [driver.Deployment.Registered] where there is nothing to register at.
func registeredEverywhere(string) bool { return true }

// followersOf returns what the Service leaves and whose backends a pass brings in line: one at most, which the Service shows, but for
// [driver.Moved].
func followersOf(balancer driver.Balancer, svc *corev1.Service, when driver.Stage) []driver.Follower {
	if mover, ok := balancer.(driver.Mover); ok {
		return mover.Follows(svc, when)
	}
	return nil
}

// followSoon is how soon another pass brings in line what a Service leaves, if the one that moved it has not, or if that failed.
const followSoon = 2 * time.Second

// followMoved brings the backends in line on what the Service leaves in a while, for as long as something keeps it from leaving: until
// then, clients go on to use the address that they know. The pass that moves the Service leaves this to the next one, so that the new
// address is shown first, and the pass that leaves needs it no more. What fails here keeps the Service from nothing else. It returns how
// many calls changed something, and after what time another pass is due for this, 0 for none.
func (r *Reconciler) followMoved(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known state, held *locks, in driver.Inputs, shown driver.Shown, failed bool,
) (after state, writes int, again time.Duration) {
	if shown.Status == nil || known.pausedBy != "" {
		return known, 0, 0
	}
	lefts := followersOf(known.balancer, svc, driver.Moved)
	switch {
	case len(lefts) == 0:
		return known, 0, 0
	case !alreadyShows(svc, *shown.Status):
		return known, 0, min(followSoon, known.moveGrace(r.opts.MoveGrace))
	case !failed && !shown.KeepsLeft && !known.leaveAt.IsZero() && !time.Now().Before(known.leaveAt):
		return known, 0, 0
	}
	for _, left := range lefts {
		var came driver.Deployment
		known, came = r.followOne(ctx, svc, params, known, held, in, left)
		writes += came.Writes
		if err := came.OutcomeError(); err != nil {
			klog.FromContext(ctx).Info("The load balancer that the Service leaves was not brought in line", "err", err)
			wait, _ := failure.WaitTime(err)
			again = max(again, wait, followSoon)
		}
	}
	return known, writes, again
}

// alreadyShows reports whether a Service already shows the addresses of a status.
func alreadyShows(svc *corev1.Service, status corev1.LoadBalancerStatus) bool {
	return slices.EqualFunc(svc.Status.LoadBalancer.Ingress, status.Ingress, func(a, b corev1.LoadBalancerIngress) bool {
		return a.IP == b.IP && a.Hostname == b.Hostname
	})
}

// followOne brings the backends in line on a load balancer that the Service leaves.
func (r *Reconciler) followOne(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known state, held *locks, in driver.Inputs, left driver.Follower,
) (state, driver.Deployment) {
	read := func(driver.Balancer) (found driver.Balancer, err error) {
		left, err = left.RefreshBackends(ctx, svc)
		return left, err
	}
	if known.leftLock != nil {
		if _, err := held.holdBalancer(ctx, *known.leftLock); err != nil {
			return known, driver.Deployment{Err: err}
		}
	}
	_, err := r.readLocked(ctx, svc, params, held, left, read)
	if failure.IsInterrupted(err) { // it has waited for the lock, which it holds now; the next pass follows what has changed meanwhile
		_, err = r.readLocked(ctx, svc, params, held, left, read)
	}
	if err != nil {
		return known, driver.Deployment{Err: err} // whether anything is registered there is not known
	}
	if known.leftLock = new(left.SharedID(svc, params)); left.ID() == "" {
		return known, driver.Deployment{Registered: registeredEverywhere}
	}
	in.Choice = r.chooseLeft(svc, known.engine, left, in)
	plan := left.PlanBackends(in)
	r.traffic.announce(ctx, svc, plan, func() bool { return left.Backends(in).Pods })
	deployed := deployPlan(ctx, svc, known.engine.Product(), plan, noteNothing)
	r.doubtOthers(svc, held, deployed)
	if deployed.RefusedBackend || deployed.Uncertain {
		known.cache.interfaces = nil
	}
	if deployed.Writes > 0 { // the new place may have the same groups
		known.balancer, _ = known.balancer.InvalidateShared(deployed.Shared, "written to at the place that the Service leaves")
	}
	return known, deployed
}

// followUnplanned ends a pass without a plan, because the new place of the Service cannot be read or is refused. The one that the Service
// shows meanwhile is followed all the same: it may be the only one, and for as long as the cause lasts. The gate of a pod that is
// registered there opens: there is where clients are.
func (r *Reconciler) followUnplanned(
	ctx context.Context, params annotation.Params, known state, done ensured, held *locks, err error,
) (state, ensured, error) {
	shown := followersOf(known.balancer, done.service, driver.Unplanned)
	if known.pausedBy != "" || len(shown) == 0 {
		return known, done, err
	}
	inputs, unread := r.gatherBackends(ctx,
		driver.Inputs{Service: done.service, Params: params.WithLast(known.lastValid), Invalid: params.Invalid},
		known)
	if unread != nil {
		return known, done, err
	}
	known.cache = inputs.cache
	known, left := r.followOne(ctx, done.service, params, known, held, inputs.Inputs, shown[0])
	done.writes += left.Writes
	done.wakes = append(done.wakes, inputs.readyGraceLeft, inputs.slicelessLeft)
	if left.Balancer == nil { // there is nothing, or nobody knows
		return known, done, errors.Join(err, left.OutcomeError())
	}
	done.registered = left.Registered
	problems, gateErr := r.openGates(ctx, done.service, known.cache.gates, left.Registered, left.ServesAddress)
	done.problems = append(done.problems, problems...)
	return known, done, errors.Join(err, left.OutcomeError(), gateErr)
}

// forgetGone forgets what the Service is to leave and what is gone already. It returns after what time one of those that may be gone is to
// be read again, 0 for none. A place that cannot be read is there.
func (r *Reconciler) forgetGone(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known state, held *locks,
) (state, time.Duration) {
	mover, ok := known.balancer.(driver.Mover)
	if !ok {
		return known, 0
	}
	soonest := time.Duration(0)
	for _, former := range mover.Left(svc) {
		found, err := r.readLocked(ctx, svc, params, held, former, func(balancer driver.Balancer) (driver.Balancer, error) {
			return balancer.RefreshForRemoval(ctx, svc, nil)
		})
		known.balancer = mover.Leave(found, svc, err == nil && found.ID() == "")
		if wait, later := failure.WaitTime(err); later && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
		if mover, ok = known.balancer.(driver.Mover); !ok {
			break
		}
	}
	return known, soonest
}

// storeLeft writes to the Service what it still has to leave.
func (r *Reconciler) storeLeft(ctx context.Context, svc *corev1.Service, known *state) error {
	if known.record == nil {
		return nil
	}
	record := known.balancer.Recorded(*known.record)
	known.record = &record
	if _, err := r.writer.changeService(ctx, svc, func(svc *corev1.Service) {
		known.storeRecord(record)(svc)
		if !known.isLeaving(svc) {
			endMove(svc)
		}
	}); err != nil {
		return fmt.Errorf("record what the Service has left: %w", err)
	}
	return nil
}

// leaveBalancers removes what the Service has on load balancers that it has left. Each of them may be one that Services share, with a lock
// of its own. One that cannot be read holds no other one.
func (r *Reconciler) leaveBalancers(ctx context.Context, svc *corev1.Service, known state, held *locks) (state, error) {
	mover, ok := known.balancer.(driver.Mover)
	if !ok {
		return known, nil
	}
	var unread error
	for _, former := range mover.Left(svc) {
		left := known
		left.balancer, left.record = former, nil
		left, gone, err := r.leaveOne(ctx, svc, left, held)
		known.balancer = mover.Leave(left.balancer, svc, gone && err == nil)
		if err != nil && !driver.IsUnread(err) {
			return known, err
		}
		unread = errors.Join(unread, err)
		if mover, ok = known.balancer.(driver.Mover); !ok {
			break
		}
	}
	return known, unread
}

// leaveOne reports whether nothing of the Service is left on a load balancer.
func (r *Reconciler) leaveOne(ctx context.Context, svc *corev1.Service, left state, held *locks) (after state, gone bool, err error) {
	params, _ := left.engine.Params(svc)
	read := func(balancer driver.Balancer) (driver.Balancer, error) {
		return balancer.RefreshForRemoval(ctx, svc, nil)
	}
	for range maxLeaves {
		if left.balancer, err = r.readLocked(ctx, svc, params, held, left.balancer, read); err != nil {
			return left, false, err
		}
		if left.balancer.ID() == "" {
			return left, true, nil
		}
		former := left.balancer
		var removal driver.Removal
		if left, removal, err = r.removeFrom(ctx, svc, left, held); err != nil {
			return left, false, err
		}
		if removal.Preserved || len(removal.Plan.Steps()) == 0 {
			r.emitKept(ctx, svc, removal)
			return left, true, nil
		}
		former.Removed(removal)
		left.balancer = former // it is read once more: what one answer lacks would stay for good
	}
	return left, false, nil
}

// maxLeaves is how often a load balancer is read that a Service leaves: the last answer shows that nothing of it is left.
const maxLeaves = 3
