package service

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// emitEvents emits the events of a pass: one per outcome, however many attempts it takes. It returns the signature of the failure, empty
// after a success, and the id of a load balancer whose replacement has no event yet.
func (r *Reconciler) emitEvents(svc *corev1.Service, known state, done ensured, syncErr error, retryLater bool) (failed, replaced string) {
	r.emitProblems(svc, done.problems, syncErr)
	product := known.engine.Product().Name
	_, isUnmet := unmetWish(done.problems)
	switch {
	case retryLater:
		return known.failure, known.replaced
	case syncErr != nil:
		r.emitFailure(svc, failureReason(syncErr), failure.Signature(syncErr), syncErr)
		return failure.Signature(syncErr), known.replaced
	case problem.HasReason(done.problems, problem.ReasonPaused): // nothing was done
		return "", known.replaced
	case known.replaced != "" && known.balancer.ID() != "":
		r.opts.Recorder.Eventf(svc, corev1.EventTypeWarning, problem.ReasonLoadBalancerRecreated,
			"%s %s no longer exists; %s with address %s replaces it",
			product, known.replaced, known.balancer.ID(), known.balancer.Address())
		return "", ""
	case (done.writes > 0 || known.failure != "") && !isUnmet: // an unmet wish has an event of its own
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonEnsured, "%s %s matches the Service%s", product, known.balancer.ID(),
			addressNote(svc, known, done))
	}
	return "", known.replaced
}

// addressNote is what users of the first address of a Service have to know.
func addressNote(svc *corev1.Service, known state, done ensured) string {
	note, before := known.engine.Product().AddressNote, svc.Status.LoadBalancer.Ingress
	if note == "" || len(before) > 0 || done.status == nil || len(done.status.Ingress) == 0 ||
		done.status.Ingress[0].Hostname != known.balancer.Address() {
		return ""
	}
	return "; " + note
}

// emitProblems emits one event per reason. A pass that failed has not seen everything: what it did not find is not resolved. Whether the
// Service can leave a former load balancer shows at the end of a pass.
func (r *Reconciler) emitProblems(svc *corev1.Service, problems []problem.Problem, syncErr error) {
	if reasons := r.emitEach(svc, problems); syncErr == nil {
		r.events.Retain(events.Of(svc), append(reasons, problem.ReasonCleanFailed)...)
	}
}

// emitEach emits one event per reason, and returns the reasons.
func (r *Reconciler) emitEach(svc *corev1.Service, problems []problem.Problem) (reasons []string) {
	for _, found := range problem.ByReason(problems) {
		r.events.Emit(events.Of(svc), events.Event{
			Object: svc, Type: problem.EventType(found.Reason), Reason: found.Reason, Message: found.Message, Outcome: found.Message,
		})
		reasons = append(reasons, found.Reason)
	}
	return reasons
}

// emitFailure emits a Warning about a failed pass, once per signature.
func (r *Reconciler) emitFailure(svc *corev1.Service, reason, signature string, err error) {
	r.events.Emit(events.Of(svc), events.Event{
		Object: svc, Type: corev1.EventTypeWarning, Reason: reason, Message: failure.Text(err), Outcome: signature,
	})
}

// emitUnwritten emits a Warning that the API server did not take a change of the Service, and returns the failure's signature.
func (r *Reconciler) emitUnwritten(svc *corev1.Service, reason string, err error) string {
	failure := reason + ":" + string(apierrors.ReasonForError(err))
	r.emitFailure(svc, reason, failure, err)
	return failure
}

// failureReason is the reason of the event about a failed pass.
func failureReason(err error) string {
	var config *problem.ConfigError
	if errors.As(err, &config) && config.Event != "" {
		return config.Event
	}
	reason := ""
	for _, leaf := range failure.Leaves(err) {
		var refused *problem.RefusedError
		if !errors.As(leaf, &refused) || reason != "" && reason != refused.Problem.Reason {
			return problem.ReasonSyncFailed
		}
		reason = refused.Problem.Reason
	}
	return reason
}

// logIneffective writes to the log what is not there yet, because every pass comes to the same. It returns what was written last.
func logIneffective(ctx context.Context, found []string, before string) string {
	text := strings.Join(found, "; ")
	if text != "" && text != before {
		klog.FromContext(ctx).Info("Some annotations have no effect", "notes", text)
	}
	return text
}
