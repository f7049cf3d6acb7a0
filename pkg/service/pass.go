package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// provisionService makes one pass over a Service that wants a load balancer: the finalizer, the stages of [Reconciler.ensureBalancer], and
// what the Service shows of them.
func (r *Reconciler) provisionService(ctx context.Context, cached *corev1.Service, held *locks) (time.Duration, error) {
	known := r.stateOf(cached)
	adopted := known.carriesFinalizer(cached)
	known = known.atFirstPass(adopted).withCause(cached).afterEdit(cached)
	defer func() { r.states.commitState(cached, known) }()
	known = known.afterPause(r.opts.pausedBy(cached))
	svc, err := r.withFinalizer(ctx, cached, known)
	if err != nil {
		known.failure = r.emitUnwritten(cached, problem.ReasonFailedAddFinalizer, err)
		behind.noteUnsynced(mark.ServiceName(cached), lag{known.engine.Product().Name, problem.ReasonFailedAddFinalizer}, time.Now())
		return 0, err
	}
	if svc == nil || !r.opts.wantsBalancer(svc) || r.opts.changesProduct(svc) {
		return 0, nil // changed since the cache saw it; its event is on the way
	}
	measured := measurePass(ensureKind(svc), known.engine.Product())
	turn, end := r.takeTurn(ctx, mark.ServiceName(svc), known.backoff)
	known = r.readForNodes(svc, known)
	known, done, syncErr := r.ensureBalancer(alicloud.WithReason(turn, known.cause), svc, adopted, known, held)
	r.noteOutcome(svc, known, adopted, done, syncErr)
	known = known.causeAfter(syncErr)
	known.backoff.waitingSince = end(syncErr)
	if syncErr != nil && ctx.Err() != nil {
		return 0, syncErr // shutting down is no failure
	}
	wait, retryLater := failure.WaitTime(syncErr)
	retryLater = retryLater && known.backoff.isPatient()
	known.backoff, done.writes = known.backoff.countWrites(done.writes, retryLater)
	measured.endPass(syncErr, retryLater, done.writes > 0)
	if err = r.updateStatus(ctx, known, done, syncErr, retryLater); err != nil {
		known.failure = r.emitUnwritten(svc, problem.ReasonFailedUpdateStatus, err)
		behind.noteUnsynced(mark.ServiceName(svc), lag{known.engine.Product().Name, problem.ReasonFailedUpdateStatus}, time.Now())
		return 0, errors.Join(syncErr, err)
	}
	known.failure, known.replaced = r.emitEvents(svc, known, done, syncErr, retryLater)
	if retryLater {
		return wait, nil
	}
	if known, wait, retryLater, syncErr = r.finishPass(ctx, svc, known, &done, held, syncErr); retryLater {
		return wait, nil
	}
	known = known.afterProblems(done.problems).afterConflicts(done.problems, syncErr)
	return r.nextPassIn(known, done, syncErr)
}

// withFinalizer adds the finalizer to a Service, unless it is there. A paused Service without anything in the cloud may go at any time.
func (r *Reconciler) withFinalizer(ctx context.Context, svc *corev1.Service, known state) (*corev1.Service, error) {
	if known.pausedBy != "" || driver.HasFinalizer(svc, known.engine.Product().Finalizer) {
		return svc, nil
	}
	svc, err := r.writer.changeService(ctx, svc, func(svc *corev1.Service) { addFinalizer(svc, known.engine) })
	if err != nil {
		return nil, fmt.Errorf("add the finalizer: %w", err)
	}
	return svc, nil
}

// finishPass does what may only follow the status of the Service: it writes readiness gates and, once the Service is in its place, leaves
// the load balancer that it was on before. With later, the pass ends here, and the next one is due after wait.
func (r *Reconciler) finishPass(
	ctx context.Context, svc *corev1.Service, known state, done *ensured, held *locks, syncErr error,
) (after state, wait time.Duration, later bool, err error) {
	if done.registered != nil {
		done.wakes = append(done.wakes, r.readGates(ctx, svc, known.cache.gates, maxGateReads, done.registered))
	}
	// What is shown while it is paused is what it may be about to leave.
	if syncErr != nil && !done.serves || done.status == nil || done.keepsLeft || known.pausedBy != "" {
		return known, 0, false, syncErr
	}
	known, leaves, err := r.leaveAfterMove(alicloud.WithReason(ctx, causeMove), done.service, *done.status, known, held)
	if leaves > 0 {
		done.wakes = append(done.wakes, leaves)
	}
	if err == nil {
		r.events.Resolve(events.Of(svc), problem.ReasonCleanFailed)
		return known, 0, false, syncErr
	}
	if wait, later = failure.WaitTime(err); !later && ctx.Err() == nil {
		r.emitFailure(done.service, problem.ReasonCleanFailed, failure.Signature(err), err)
	}
	return known, wait, later, err
}

// ensured is what the stages of [Reconciler.ensureBalancer] came to.
type ensured struct {
	// service is the Service as they left it.
	service  *corev1.Service
	problems []problem.Problem
	// writes counts the calls that changed something.
	writes int
	// record is what was applied, and status what the Service is to show; nil leaves them as they are.
	record        *driver.Record
	status        *corev1.LoadBalancerStatus
	ports         []corev1.PortStatus
	securityGroup *string
	// registered reports whether the address of a pod gets traffic, see [driver.Deployment]. It is nil before anything was deployed.
	registered func(address string) bool
	// keepsLeft is [driver.Shown.KeepsLeft], and serves is [driver.Shown.Serves].
	keepsLeft, serves bool
	// moves says that status shows a load balancer that the Service has moved to, while it has something on another one.
	moves bool
	// unmade counts the steps that were not carried out, because the Service is paused.
	unmade int
	// planned says that it had steps to carry out.
	planned bool
	// located says that this pass knows on which load balancer the Service is.
	located bool
	// wakes are times after which the Service is due for another pass; 0 is none.
	wakes []time.Duration
}

// ensureBalancer makes the load balancer of a Service as it is wanted, stage by stage. The caller holds the locks and commits the state.
// adopted says that the Service may have had a load balancer before this program saw it. A panic is an error.
func (r *Reconciler) ensureBalancer(
	ctx context.Context, svc *corev1.Service, adopted bool, known state, held *locks,
) (after state, done ensured, err error) {
	defer func() {
		if lost := panicAsError(ctx, recover()); lost != nil {
			after, done, err = known.afterPanic(), ensured{service: svc}, lost
		}
	}()
	params, problems := r.readParams(known.engine, svc)
	done = ensured{service: svc, problems: problems}
	if svc, known, err = known.withinBounds(svc); err != nil {
		if svc == nil {
			return known, done, err
		}
		done.problems = append(done.problems, problem.Newf(problem.ReasonFeatureNotSupported, "%v; the Service keeps those that it had", err))
	}
	var unread error
	svc, known, err = r.settleCreation(ctx, svc, known)
	if done.service = svc; err == nil {
		svc, known, _ = known.withinBounds(svc) // it may have been written
		known, unread, err = r.refreshBalancer(ctx, svc, params, adopted, known, held)
	}
	if err != nil {
		return r.followUnplanned(ctx, params, known, done, held, err)
	}
	known, done.located = known.searchedFor(), true
	r.noteTraffic(svc, known, false)
	if err = known.engine.Refuse(params); err != nil && known.balancer.ID() == "" {
		return r.followUnplanned(ctx, params, known, done, held, err)
	}

	inputs, decision, err := r.decidePlan(ctx, svc, params, known)
	known.cache, known.lastValid = inputs.cache, inputs.lastValid
	done.problems = append(done.problems, decision.Problems...)
	if err != nil {
		return r.followUnplanned(ctx, params, known, done, held, err)
	}
	if known.drifting && len(decision.Plan.Steps()) > 0 {
		driftFound.WithLabelValues(known.engine.Product().Name).Inc()
	}
	known.ineffective = logIneffective(ctx, decision.Ineffective, known.ineffective)

	if known.pausedBy != "" {
		return known, done.pausedBy(known.pausedBy, known.engine.Product(), decision.Plan), unread
	}
	written, intent, err := r.recordIntent(ctx, svc, known, decision)
	if written == nil {
		return known, done, err
	}
	known.record, done.service, done.planned = &intent, written, len(decision.Plan.Steps()) > 0
	r.traffic.announce(ctx, svc, decision.Plan, func() bool { return known.balancer.Backends(inputs.Inputs).Pods })

	created := &creating{writer: r.writer, svc: written, known: &known}
	deployed := deployPlan(ctx, svc, known.engine.Product(), decision.Plan, created.createOnce)
	created.endCreation()
	written, done.service = created.svc, created.svc
	r.doubtOthers(svc, held, deployed)
	err = errors.Join(deployed.OutcomeError(), unread, inputs.unread)
	known = known.afterDeployment(deployed).readUntilSettled(decision.Plan)
	if done.planned {
		r.countDeployed(svc, known.balancer, inputs.Inputs, known.engine)
	}
	r.noteRefused(svc, known.engine, deployed) // what was refused is not what it has
	r.uses.noteService(svc, known, inputs.Choice.Firm)

	known, shown, left := r.showAddresses(ctx, written, params, known, held, inputs.Inputs, deployed)
	done.registered = deployed.Registered
	gateProblems, gateErr := r.openGates(ctx, svc, known.cache.gates, deployed.RegisteredAlso(left), left.ServesAddress)
	done.status, done.ports, done.securityGroup, done.keepsLeft = shown.Status, shown.Ports, shown.SecurityGroup, shown.KeepsLeft
	done.serves = shown.Serves
	done.moves = shown.Status != nil && !shown.Elsewhere && !shown.KeepsLeft && known.isLeaving(written)
	deployed.Balancer = known.balancer
	var unrecorded []problem.Problem
	known.record, done.record, unrecorded = recordApply(*known.record, decision.Applied, deployed, err != nil)
	done.problems = slices.Concat(done.problems, gateProblems, shown.Problems, unrecorded)
	err = errors.Join(err, gateErr, left.OutcomeError())
	known, moved, again := r.followMoved(ctx, written, params, known, held, inputs.Inputs, shown, err != nil)
	done.wakes = []time.Duration{inputs.readyGraceLeft, inputs.slicelessLeft, inputs.retryIn, shown.Wake, again}
	done.writes = deployed.Writes + left.Writes + moved
	return known, done, err
}

// readParams returns what the annotations and the fields of the Service say, as far as the policy of the cluster accepts it.
func (r *Reconciler) readParams(engine driver.Engine, svc *corev1.Service) (annotation.Params, []problem.Problem) {
	kind := r.opts.typeProblem(svc, engine.Product())
	if driver.HandsOver(r.opts.Config, svc) { // the annotation has chosen the engine, which would report that it is not read
		untyped := *svc
		untyped.Annotations = annotation.Without(svc.Annotations, annotation.Type)
		svc = &untyped
	}
	params, problems := engine.Params(svc)
	params, refused := r.opts.Config.Policy.Restrict(svc.Namespace, params)
	return params, slices.Concat(problems, refused, kind)
}

// refreshBalancer reads what is in doubt of the load balancer. It returns why parts could not be read.
func (r *Reconciler) refreshBalancer(
	ctx context.Context, svc *corev1.Service, params annotation.Params, adopted bool, known state, held *locks,
) (after state, unread error, err error) {
	var found driver.Refreshed
	balancer, err := r.readLocked(ctx, svc, params, held, known.balancer, func(balancer driver.Balancer) (driver.Balancer, error) {
		known.balancer = balancer
		request := known.requestFor(svc, params, adopted)
		request.DueSoon = r.states.dueSoon
		known.drifting = request.DriftDue && !known.readAt.IsZero() && balancer.Trusted()
		found, err = balancer.Refresh(ctx, request)
		known = known.afterRefresh(found, r.opts.ResyncPeriod)
		return found.Balancer, err
	})
	known.balancer = balancer
	return known, found.Unread, err
}

// decidePlan gathers the inputs and plans. What an annotation says that is not accepted now, it says as it was last accepted.
func (r *Reconciler) decidePlan(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known state,
) (gathered, driver.Decision, error) {
	accepted := params.WithLast(known.lastValid)
	in := driver.Inputs{Service: svc, Params: accepted, Invalid: params.Invalid, Applied: *known.record, Reclaimed: known.removal.reclaimed}
	inputs, err := r.gatherInputs(ctx, in, known)
	inputs.lastValid = &accepted
	if err != nil {
		return inputs, driver.Decision{}, err
	}
	decision, err := known.balancer.Plan(ctx, inputs.Inputs)
	decision.Problems = append(decision.Problems, inputs.problems...)
	return inputs, decision, err
}

// recordIntent writes to the Service the tags and domains that a plan is about to write, before it does. It returns the Service and
// the Record as they are then; the Service is nil when it is gone.
func (r *Reconciler) recordIntent(
	ctx context.Context, svc *corev1.Service, known state, decision driver.Decision,
) (*corev1.Service, driver.Record, error) {
	applied := *known.record
	if decision.Applied == nil || len(decision.Plan.Steps()) == 0 || applied.CoversRecord(decision.Applied.Intent()) {
		return svc, applied, nil
	}
	both := applied.MergeWith(decision.Applied.Intent())
	written, err := r.writer.changeService(ctx, svc, known.storeRecord(both))
	if err != nil {
		return nil, applied, fmt.Errorf("record what is about to be written: %w", err)
	}
	return written, both, nil
}

// recordApply returns the Record after a plan, and again what the Service is to hold of it, nil to leave that as it is.
func recordApply(
	applied driver.Record, wanted *driver.Record, done driver.Deployment, failed bool,
) (known, store *driver.Record, problems []problem.Problem) {
	if done.Balancer.ID() == "" || wanted == nil {
		return &applied, nil, nil
	}
	record, _, complete := done.Balancer.Recorded(applied.AfterPlan(*wanted, failed, done.Refused, done.Untagged)).Bounded()
	if !complete {
		problems = []problem.Problem{problem.Newf(problem.ReasonFeatureNotSupported, "the annotations name more tags, domains, certificates and "+
			"security groups than the manager can remember; of those, it will not take back what leaves the annotations")}
	}
	return &record, &record, problems
}

// nextPassIn returns when the Service is due for another pass without any event.
func (r *Reconciler) nextPassIn(known state, done ensured, syncErr error) (time.Duration, error) {
	wait := max(time.Until(known.driftAt), time.Second)
	switch {
	case failure.AllConfig(syncErr):
		// Only a change of the Service, or the pass for drift, can help: repeating does not.
		return r.opts.ResyncPeriod, nil
	case syncErr != nil:
		return 0, syncErr
	case problem.HasReason(done.problems, problem.ReasonLoadBalancerLocked):
		wait = lockedWait
	case problem.HasReason(done.problems, problem.ReasonListenerConflict):
		wait = conflictWait
	case problem.HasReason(done.problems, problem.ReasonSkipSyncBackends):
		wait = min(known.skipped.nextReadIn(), wait)
	}
	if done.writes > 0 && problem.HasReason(done.problems, problem.ReasonQuotaReached) {
		wait = min(balanceWait, wait)
	}
	return soonestOf(wait, done.wakes...), nil
}

// soonestOf returns the shortest of the times, where 0 is none.
func soonestOf(wait time.Duration, others ...time.Duration) time.Duration {
	for _, sooner := range others {
		if sooner > 0 {
			wait = min(sooner, wait)
		}
	}
	return wait
}

// deployPlan carries out a plan.
func deployPlan(
	ctx context.Context, svc *corev1.Service, product driver.Product, plan driver.Plan, create driver.Create,
) driver.Deployment {
	observePlan(product, plan)
	return plan.Deploy(ctx, svc, create)
}

// noteNothing is the [driver.Create] of plans that create no load balancer.
func noteNothing(_ context.Context, _ any, send func(token string) (id string, err error)) error {
	_, err := send("")
	return err
}

// nothing is the plan of a pass that writes nothing.
type nothing struct{ balancer driver.Balancer }

func (nothing) Steps() []driver.Step { return nil }

func (n nothing) Deploy(context.Context, *corev1.Service, driver.Create) driver.Deployment {
	return driver.Deployment{Balancer: n.balancer, Registered: func(string) bool { return false }}
}
