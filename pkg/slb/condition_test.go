package slb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestConditionSaysWhatToChange: as long as something keeps the CLB from matching the Service, the condition is
// false and names it, also when one thing takes the place of another; then it is true again.
func TestConditionSaysWhatToChange(t *testing.T) {
	t.Parallel()
	type step struct {
		change         func(*world, *corev1.Service)
		reason, naming string
	}
	set := func(suffix annotation.Suffix, value string) func(*world, *corev1.Service) {
		return func(_ *world, svc *corev1.Service) { setOrDelete(svc, suffix, value) }
	}
	own := func(*world) *corev1.Service { return testService("web", 80) }
	for _, test := range []struct {
		name    string
		service func(*world) *corev1.Service
		steps   []step
	}{
		{"values that are not accepted", own, []step{
			{set(annotation.Scheduler, "fastest"), problem.ReasonInvalidAnnotation, "scheduler"},
			{func(_ *world, svc *corev1.Service) {
				annotate(svc, annotation.Scheduler, "wrr")
				annotate(svc, annotation.HealthyThreshold, "99")
			}, problem.ReasonInvalidAnnotation, "healthy-threshold"},
			{set(annotation.HealthyThreshold, "9"), problem.ReasonEnsured, ""},
		}},
		{"one without effect beside one that is not accepted", own, []step{
			{func(_ *world, svc *corev1.Service) {
				annotate(svc, annotation.Bandwidth, "9")
				annotate(svc, annotation.Scheduler, "fastest")
			}, problem.ReasonInvalidAnnotation, "scheduler"},
			{set(annotation.Scheduler, ""), problem.ReasonEnsured, ""},
		}},
		{"an attribute that cannot change", own, []step{
			{set(annotation.VSwitchID, "vsw-b"), problem.ReasonImmutableAttribute, "vsw-b"},
			{set(annotation.VSwitchID, ""), problem.ReasonEnsured, ""},
		}},
		{"a port of another Service", func(w *world) *corev1.Service {
			id := w.makeCLB().ID
			w.makeListener(id, 81, "k8s/81/other/default/c9")
			return reusing("web", id, "true", 80)
		}, []step{
			{func(_ *world, svc *corev1.Service) {
				svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
			},
				problem.ReasonListenerConflict, "Service default/other of cluster c9"},
			{func(_ *world, svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] }, problem.ReasonEnsured, ""},
		}},
		{"a CLB that cannot be used", own, []step{
			{func(_ *world, svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }, "", ""},
			{func(_ *world, svc *corev1.Service) {
				svc.Spec.Type = corev1.ServiceTypeLoadBalancer
				annotate(svc, annotation.LoadBalancerID, "lb-none")
			}, problem.ReasonLoadBalancerNotReusable, "lb-none"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.put(test.service(w))
			w.mustPass("web")
			for i, step := range test.steps {
				w.change("web", func(svc *corev1.Service) { step.change(w, svc) })
				w.mustPass("web")
				w.drift("web")
				w.mustPass("web")
				if step.reason == "" {
					continue
				}
				condition := w.synced("web")
				if met := condition.Status == metav1.ConditionTrue; condition.Reason != step.reason || met != (step.reason == problem.ReasonEnsured) ||
					!strings.Contains(condition.Message, step.naming) {
					t.Errorf("step %d: condition %+v, want %s that names %q", i+1, condition, step.reason, step.naming)
				}
			}
		})
	}
}
