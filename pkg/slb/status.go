package slb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// ConditionSynced on a Service says whether its CLB is as the Service wants it.
const ConditionSynced = "service.alibabacloud.com/LoadBalancerSynced"

// shown is what a Service shows of its CLB.
type shown struct {
	// status is nil while the CLB does not answer yet, or while nobody knows which addresses to show: then the last one stays.
	status   *corev1.LoadBalancerStatus
	problems []problem.Problem
}

// status returns what the Service is to show, and the elastic addresses as they are known then.
func (e *engine) status(ctx context.Context, clb observed, desired *model.Model, params annotation.Params) (shown, part[[]string]) {
	actual := clb.model()
	if actual == nil || params.Refuses(annotation.ScopeStatus) || !actual.Serves(desired) && (!actual.Reused || params.OverridesListeners()) {
		return shown{}, clb.addresses
	}
	external, addresses, problems := e.externalAddresses(ctx, clb, params)
	return shown{status: statusOf(actual, params, external), problems: problems}, addresses
}

// statusOf returns what the Service shows of its CLB; external are addresses to show in place of the CLB's own.
func statusOf(actual *model.Model, params annotation.Params, external []string) *corev1.LoadBalancerStatus {
	if name := params.Get(annotation.Hostname); name != "" {
		return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{Hostname: name}}}
	}
	if len(external) == 0 {
		external = []string{actual.LoadBalancer.Address}
	}
	status := &corev1.LoadBalancerStatus{}
	for _, address := range external {
		status.Ingress = append(status.Ingress, corev1.LoadBalancerIngress{IP: address})
	}
	return status
}

// updateStatus writes label, status, Record and condition in one patch. While the cloud is not ready the last condition stays.
func (r *Reconciler) updateStatus(ctx context.Context, known state, done ensured, syncErr error, retryLater bool) error {
	condition, changed := conditionOf(done.problems, syncErr, retryLater)
	repeated := syncErr != nil && signature(syncErr) == known.failure
	_, err := r.writer.change(ctx, done.service, func(svc *corev1.Service) {
		if clb := known.clb.model(); clb != nil {
			metav1.SetMetaDataLabel(&svc.ObjectMeta, LabelLoadBalancerID, clb.LoadBalancer.ID)
		}
		if done.status != nil {
			svc.Status.LoadBalancer = *done.status
		}
		if done.record != nil {
			done.record.store()(svc)
		}
		// The text of a failed call holds a request id and differs every time; writing it each time would make an event of it.
		old := meta.FindStatusCondition(svc.Status.Conditions, condition.Type)
		if changed && (old == nil || old.Status != condition.Status || old.Reason != condition.Reason || !repeated) {
			meta.SetStatusCondition(&svc.Status.Conditions, condition)
		}
	})
	if err != nil {
		return fmt.Errorf("update the status of the Service: %w", err)
	}
	return nil
}

// conditionOf returns the condition after a pass, and false to leave the last one.
func conditionOf(problems []problem.Problem, syncErr error, retryLater bool) (metav1.Condition, bool) {
	condition := metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse}
	unmet, isUnmet := unmetWish(problems)
	switch {
	case syncErr == nil && isUnmet:
		condition.Reason, condition.Message = unmet.Reason, unmet.Message
	case syncErr == nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, problem.ReasonEnsured, "The CLB is as the Service wants it"
	case !retryLater:
		condition.Reason, condition.Message = failureReason(syncErr), syncErr.Error()
	default:
		return condition, false
	}
	return condition, true
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
