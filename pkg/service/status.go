package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// ConditionSynced on a Service says whether its load balancer matches it.
const ConditionSynced = "service.alibabacloud.com/LoadBalancerSynced"

// updateStatus writes label, status, Record and condition in one patch. While the cloud is not ready the last condition stays.
func (r *Reconciler) updateStatus(ctx context.Context, known state, done ensured, syncErr error, retryLater bool) error {
	condition, changed := conditionOf(known.engine.Product(), done, syncErr, retryLater)
	behind.observeOutcome(done.service, known.engine.Product(), condition, changed)
	repeated := syncErr != nil && failure.Signature(syncErr) == known.failure
	_, err := r.writer.changeService(ctx, done.service, func(svc *corev1.Service) {
		setLabels(svc, known.balancer.ID(), done.securityGroup)
		switch {
		case done.moves:
			showMove(svc, *done.status, known.moveGrace(r.opts.MoveGrace), time.Now())
		case !known.isLeaving(svc):
			endMove(svc)
		}
		if done.status != nil {
			svc.Status.LoadBalancer = withModes(*done.status, svc.Status.LoadBalancer)
		}
		if done.status != nil || done.ports != nil {
			driver.ShowPorts(&svc.Status.LoadBalancer, done.ports)
		}
		if done.record != nil {
			known.storeRecord(*done.record)(svc)
		} else {
			known.storeOrigin(svc)
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

// setLabels sets the labels for what the Service has; an empty id is not known, no security group leaves its label as it is.
func setLabels(svc *corev1.Service, id string, securityGroup *string) {
	if id != "" {
		metav1.SetMetaDataLabel(&svc.ObjectMeta, driver.LabelLoadBalancerID, id)
	}
	switch {
	case securityGroup == nil:
	case *securityGroup == "":
		delete(svc.Labels, driver.LabelSecurityGroupID)
	default:
		metav1.SetMetaDataLabel(&svc.ObjectMeta, driver.LabelSecurityGroupID, *securityGroup)
	}
}

// withModes keeps the modes of addresses: the API server adds them, and without them every pass would write the status anew. It adds VIP
// only; the other mode is of a time when the Service asked for it.
func withModes(wanted, have corev1.LoadBalancerStatus) corev1.LoadBalancerStatus {
	wanted = *wanted.DeepCopy()
	for i := range wanted.Ingress {
		ingress := &wanted.Ingress[i]
		at := slices.IndexFunc(have.Ingress, func(h corev1.LoadBalancerIngress) bool { return h.IP == ingress.IP })
		if ingress.IPMode == nil && ingress.IP != "" && at >= 0 {
			if ingress.IPMode = have.Ingress[at].IPMode; ingress.IPMode != nil {
				ingress.IPMode = new(corev1.LoadBalancerIPModeVIP)
			}
		}
	}
	return wanted
}

// conditionOf returns the condition after a pass, and false to leave the last one.
func conditionOf(product driver.Product, done ensured, syncErr error, retryLater bool) (metav1.Condition, bool) {
	problems := done.problems
	condition := metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse}
	unmet, isUnmet := unmetWish(problems)
	left, isLeft := firstOf(problems, problem.ReasonListenersLeftAlone)
	switch {
	case syncErr == nil && problem.HasReason(problems, problem.ReasonPaused):
		condition = pausedCondition(condition, problems, done.unmade)
	case syncErr == nil && isUnmet:
		condition.Reason, condition.Message = unmet.Reason, unmet.Message
	case syncErr == nil && isLeft:
		// It is as the Service asks, and yet not what most expect: nothing but the condition shows it for as long as it lasts.
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, left.Reason, left.Message
	case syncErr == nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, problem.ReasonEnsured, "The "+product.Name+
			" matches the Service"
	case !retryLater:
		condition.Reason, condition.Message = failureReason(syncErr), failure.Text(syncErr)
	default:
		return condition, false
	}
	condition.Message = problem.Cut(condition.Message, problem.MaxCondition)
	return condition, true
}

// unmetWish returns the gravest of the problems that keep the load balancer from matching the Service, until its author changes
// something.
func unmetWish(problems []problem.Problem) (problem.Problem, bool) {
	return firstOf(problems, problem.ReasonLoadBalancerLocked, problem.ReasonLoadBalancerStopped, problem.ReasonInvalidAnnotation,
		problem.ReasonListenerConflict, problem.ReasonMoveRefused, problem.ReasonFeatureNotSupported,
		problem.ReasonImmutableAttribute, problem.ReasonLoadBalancerNotReusable)
}

// firstOf returns what is said of the first of the reasons of which anything is.
func firstOf(problems []problem.Problem, reasons ...string) (problem.Problem, bool) {
	for _, reason := range reasons {
		for _, problem := range problem.ByReason(problems) {
			if problem.Reason == reason {
				return problem, true
			}
		}
	}
	return problem.Problem{}, false
}
