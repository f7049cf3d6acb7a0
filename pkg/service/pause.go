package service

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// globalPause is the field of the cloud-config that pauses everything, as users know it.
const globalPause = "Global.paused of the cloud-config"

// pausedBy returns what keeps this program from changing anything of the Service in the cloud, "" for nothing.
func (o Options) pausedBy(svc *corev1.Service) string {
	if o.Config.Paused != nil && o.Config.Paused() {
		return globalPause
	}
	if driver.IsPaused(svc) {
		return "the annotation " + driver.AnnotationPaused
	}
	return ""
}

// endsPause reports whether the annotation no longer holds a Service that is being deleted with its namespace: its author has asked for the
// deletion of everything there, and nobody can remove the annotation but an administrator, who would find the namespace Terminating for
// good. Where namespaces cannot be read, the pause stays.
func (r *Reconciler) endsPause(ctx context.Context, svc *corev1.Service) bool {
	if svc.DeletionTimestamp == nil || r.opts.Config.Paused != nil && r.opts.Config.Paused() || r.opts.Client == nil {
		return false
	}
	namespace, err := r.opts.Client.CoreV1().Namespaces().Get(ctx, svc.Namespace, metav1.GetOptions{})
	return err == nil && namespace.DeletionTimestamp != nil
}

// pausedBy takes note of a plan that is not carried out. What the Service shows stays as it is.
func (e ensured) pausedBy(by string, product driver.Product, plan driver.Plan) ensured {
	e.unmade = len(plan.Steps())
	e.problems = append(e.problems, pausedProblem(by, product, plan))
	if len(e.service.Status.LoadBalancer.Ingress) > 0 {
		e.status = e.service.Status.LoadBalancer.DeepCopy()
		e.ports = e.status.Ingress[0].Ports
	}
	return e
}

// maxShownSteps is how many steps of a plan an event lists.
const maxShownSteps = 10

func pausedProblem(by string, product driver.Product, plan driver.Plan) problem.Problem {
	steps := plan.Steps()
	if len(steps) == 0 {
		return problem.Newf(problem.ReasonPaused, "%s keeps the manager from writing to the cloud; the %s matches the Service", by, product.Name)
	}
	text := ""
	for _, step := range steps[:min(len(steps), maxShownSteps)] {
		text += "; " + step.String()
	}
	if n := len(steps) - maxShownSteps; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return problem.Newf(problem.ReasonPaused, "%s keeps the manager from writing to the cloud. It would make these changes to the %s%s", by,
		product.Name, ":"+text[1:])
}

// afterPause returns the state for a pass with or without a pause. After one, what the Service has in the cloud is read again.
func (s state) afterPause(by string) state {
	if s.pausedBy != "" && by == "" {
		s.balancer = s.balancer.Invalidate("it was paused")
	}
	s.pausedBy = by
	return s
}

// holdRemoval leaves what a Service has in the cloud, and thus the Service, as long as it is paused.
func (r *Reconciler) holdRemoval(ctx context.Context, svc *corev1.Service, product driver.Product, by string) (time.Duration, error) {
	found := problem.Newf(problem.ReasonPaused, "%s keeps the manager from writing to the cloud: the %s and this Service stay until then", by,
		product.Name)
	r.emitProblems(svc, []problem.Problem{found}, nil)
	_, err := r.writer.changeService(ctx, svc, func(svc *corev1.Service) {
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
			Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: found.Reason, Message: found.Message,
		})
	})
	if err != nil {
		return 0, fmt.Errorf("update the status of the Service: %w", err)
	}
	behind.noteUnsynced(mark.ServiceName(svc), lag{product.Name, found.Reason}, time.Now())
	return r.opts.ResyncPeriod, nil
}

// pausedCondition says what would change if nothing were paused.
func pausedCondition(condition metav1.Condition, problems []problem.Problem, unmade int) metav1.Condition {
	found, _ := firstOf(problems, problem.ReasonPaused)
	condition.Reason, condition.Message = found.Reason, found.Message
	unmet, isUnmet := unmetWish(problems)
	if isUnmet {
		condition.Message += ". " + unmet.Message
	}
	if unmade == 0 && !isUnmet {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}
