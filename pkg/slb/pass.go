package slb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Reconcile makes one pass over a Service: it creates or repairs its CLB, or tears it down, and shows the result on the
// Service. It returns after what time the next pass is due without any event, 0 for none.
//
// An error that only means "not now" is not returned; the time is then short.
func (r *Reconciler) Reconcile(ctx context.Context, svc *corev1.Service) (time.Duration, error) {
	unlock, err := r.services.lock(ctx, svc.Namespace+"/"+svc.Name)
	if err != nil {
		return 0, fmt.Errorf("wait for the Service: %w", err)
	}
	defer unlock()
	known := r.memories.of(svc)
	switch {
	case wantsLoadBalancer(r.opts.Config, svc):
		return r.serve(ctx, svc, known)
	case Served(svc) && handsOver(r.opts.Config, svc):
		r.tellHandedOver(svc, known)
		return 0, nil
	case held(svc):
		return r.tearDown(ctx, svc, known)
	default:
		return 0, nil
	}
}

// Forget drops what is remembered of a Service that is gone.
func (r *Reconciler) Forget(key types.NamespacedName) { r.memories.drop(key) }

func (r *Reconciler) serve(ctx context.Context, cached *corev1.Service, known *memory) (time.Duration, error) {
	known.marked = known.marked || held(cached)
	known.begin(held(cached))
	if known.removing != "" {
		known.reclaimed = known.removing
	}
	known.removing, known.released = "", false
	svc, err := r.kube.change(ctx, cached, func(svc *corev1.Service) {
		if !held(svc) {
			addFinalizer(svc)
			storeFirstIntent(svc)
		}
	})
	if err != nil {
		return 0, r.tellUnwritten(cached, known, problem.ReasonFailedAddFinalizer, fmt.Errorf("add the finalizer: %w", err))
	}
	if svc == nil || !wantsLoadBalancer(r.opts.Config, svc) {
		return 0, nil // changed since the cache saw it; its event is on the way
	}
	measured := pass{ensuring(svc), time.Now()}
	turn, end := r.takeTurn(ctx, mark.ServiceName(svc), known)
	out, syncErr := r.ensure(turn, svc, known)
	end(syncErr)
	if out.service != nil {
		svc = out.service
	}
	wait, quiet := waitTime(syncErr)
	quiet = quiet && known.patient()
	measured.end(syncErr, quiet, out.writes > 0)
	out.repeated = syncErr != nil && signature(syncErr) == known.failure
	if err := r.show(ctx, svc, out, syncErr, quiet); err != nil {
		return 0, errors.Join(syncErr, r.tellUnwritten(svc, known, problem.ReasonFailedUpdateStatus, err))
	}
	r.tell(svc, known, out, syncErr, quiet)
	if quiet {
		return wait, nil
	}
	return r.next(known, out, syncErr)
}

// next returns when the Service is looked at again without any event.
func (r *Reconciler) next(known *memory, out outcome, syncErr error) (time.Duration, error) {
	var config *problem.ConfigError
	wait := max(time.Until(known.due), time.Second)
	switch {
	case errors.As(syncErr, &config):
		// The next look is the next change of the Service or the drift pass: repeating does not help.
		return r.opts.ResyncPeriod, nil
	case syncErr != nil:
		return 0, syncErr
	case problem.HasReason(out.problems, problem.ReasonListenerConflict):
		known.doubt() // the other may leave the port at any time, and no event tells us
		wait = conflictWait
	case problem.HasReason(out.problems, problem.ReasonSkipSyncBackends):
		wait = min(unresolvedWait, wait)
	case problem.HasReason(out.problems, problem.ReasonFailedSetEIPAddress):
		wait = min(eipWait, wait)
	}
	for _, sooner := range []time.Duration{out.gateWait, out.silence} {
		if sooner > 0 {
			wait = min(sooner, wait)
		}
	}
	return wait, nil
}

// show writes status, label and condition. While the cloud is not ready the last known ones stay.
func (r *Reconciler) show(ctx context.Context, svc *corev1.Service, out outcome, syncErr error, quiet bool) error {
	result := metav1.Condition{}
	unmet, isUnmet := unmetWish(out.problems)
	switch {
	case syncErr == nil && isUnmet:
		result = metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: unmet.Reason, Message: unmet.Message}
	case syncErr == nil:
		result = metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionTrue, Reason: problem.ReasonEnsured, Message: "The CLB is as the Service wants it"}
	case !quiet:
		result = metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: failureReason(syncErr), Message: syncErr.Error()}
	}
	if _, err := r.kube.change(ctx, svc, publish(out, result)); err != nil {
		return fmt.Errorf("show the CLB on the Service: %w", err)
	}
	return nil
}

// unmetWish returns the gravest of the problems that keep the CLB from being as the Service wants it, until its user changes
// something.
func unmetWish(problems []problem.Problem) (problem.Problem, bool) {
	for _, reason := range []string{problem.ReasonInvalidAnnotation, problem.ReasonListenerConflict, problem.ReasonFeatureNotSupported, problem.ReasonImmutableAttribute} {
		for _, problem := range problem.ByReason(problems) {
			if problem.Reason == reason {
				return problem, true
			}
		}
	}
	return problem.Problem{}, false
}

// tell sends the events of a pass: one per outcome, however many attempts it takes.
func (r *Reconciler) tell(svc *corev1.Service, known *memory, out outcome, syncErr error, quiet bool) {
	told := map[problem.Problem]bool{}
	for _, found := range problem.ByReason(out.problems) {
		if !known.told[found] {
			r.opts.Recorder.Event(svc, problem.EventType(found.Reason), found.Reason, found.Message)
		}
		told[found] = true
	}
	if syncErr != nil {
		maps.Copy(told, known.told) // a pass that ended early has not seen everything: the next one must not tell it again
	}
	known.told = told
	switch {
	case quiet:
	case syncErr != nil:
		if failure := signature(syncErr); failure != known.failure {
			r.opts.Recorder.Event(svc, corev1.EventTypeWarning, failureReason(syncErr), syncErr.Error())
			known.failure = failure
		}
	case known.recreating != "" && known.actual != nil:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeWarning, problem.ReasonLoadBalancerRecreated, "CLB %s is gone; %s with address %s takes its place",
			known.recreating, known.actual.LoadBalancer.ID, known.actual.LoadBalancer.Address)
		known.recreating, known.failure = "", ""
	case out.writes > 0 || known.failure != "":
		if _, isUnmet := unmetWish(out.problems); !isUnmet { // an event of its own tells of that
			r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonEnsured, "CLB %s is as the Service wants it", out.loadBalancerID)
		}
		known.failure = ""
	}
}

// tellUnwritten tells once that the API server did not take a change of the Service, and returns the error.
func (r *Reconciler) tellUnwritten(svc *corev1.Service, known *memory, reason string, err error) error {
	if failure := reason + ":" + string(apierrors.ReasonForError(err)); failure != known.failure {
		r.opts.Recorder.Event(svc, corev1.EventTypeWarning, reason, err.Error())
		known.failure = failure
	}
	return err
}

// tellHandedOver tells once that nothing is done for the Service.
func (r *Reconciler) tellHandedOver(svc *corev1.Service, known *memory) {
	found := handedOver(svc)
	if !known.told[found] {
		r.opts.Recorder.Event(svc, corev1.EventTypeWarning, found.Reason, found.Message)
	}
	known.told = map[problem.Problem]bool{found: true}
}

func handedOver(svc *corev1.Service) problem.Problem {
	kind, _ := annotation.Lookup(svc.Annotations, annotation.Type)
	text := ""
	if id := svc.Labels[LabelLoadBalancerID]; id != "" {
		text = fmt.Sprintf("; CLB %s stays as it is until the Service is deleted", id)
	}
	return problem.Newf(problem.ReasonFeatureNotSupported, "%s: %q leaves the Service to another controller (feature gate %s)%s", annotation.Type, kind, annotation.GateLoadBalancerType, text)
}

// tearDown removes the CLB, then what holds the Service.
func (r *Reconciler) tearDown(ctx context.Context, svc *corev1.Service, known *memory) (time.Duration, error) {
	if known.released {
		return 0, nil // the cache has not seen it yet
	}
	measured := pass{passDelete, time.Now()}
	turn, end := r.takeTurn(ctx, mark.ServiceName(svc), known)
	out, err := r.remove(turn, svc, known)
	end(err)
	wait, quiet := waitTime(err)
	quiet = quiet && known.patient()
	measured.end(err, quiet, true)
	if err != nil {
		if quiet {
			return wait, nil
		}
		if failure := signature(err); failure != known.failure {
			r.opts.Recorder.Event(svc, corev1.EventTypeWarning, problem.ReasonCleanFailed, err.Error())
			known.failure = failure
		}
		return 0, err
	}
	if _, err := r.kube.change(ctx, svc, release); err != nil {
		return 0, r.tellUnwritten(svc, known, problem.ReasonFailedRemoveFinalizer, fmt.Errorf("release the Service: %w", err))
	}
	known.failure, known.told, known.released = "", nil, true
	switch {
	case out.loadBalancerID == "":
	case out.preserved:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeWarning, problem.ReasonPreservedOnDelete, "CLB %s stays with its listeners, as the annotation %s asks", out.loadBalancerID, annotation.PreserveOnDelete)
	case out.reused:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonCleaned, "CLB %s is rid of this Service's listeners and groups", out.loadBalancerID)
	default:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonCleaned, "CLB %s is deleted", out.loadBalancerID)
	}
	return 0, nil
}

// failureReason is the reason of the event that tells of a failed pass.
func failureReason(err error) string {
	var config *problem.ConfigError
	if errors.As(err, &config) && config.Event != "" {
		return config.Event
	}
	return problem.ReasonSyncFailed
}
