package slb

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// pauses are both ways to pause a Service and to end that.
func pauses(w *world) map[string]struct{ begin, end func() } {
	var global atomic.Bool
	w.config.Paused = global.Load
	w.restart()
	annotated := func(value string) func() {
		return func() {
			w.change("web", func(svc *corev1.Service) {
				delete(svc.Annotations, driver.AnnotationPaused)
				if value != "" {
					svc.Annotations[driver.AnnotationPaused] = value
				}
			})
		}
	}
	return map[string]struct{ begin, end func() }{
		"annotation":             {annotated("true"), annotated("")},
		"annotation, misspelled": {annotated("yes"), annotated("false")},
		"cloud-config":           {func() { global.Store(true) }, func() { global.Store(false) }},
	}
}

// TestPausedService: nothing of a paused Service is written to the cloud, whatever happens, and its condition says what would be; once the
// pause ends, everything is made up for.
func TestPausedService(t *testing.T) {
	t.Parallel()
	for name := range pauses(newWorld(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pause := pauses(w)[name]
			threeNodes(w)
			w.put(testService("web", 80))
			pause.begin()
			still := func(after string, status metav1.ConditionStatus, naming string) {
				t.Helper()
				w.calls()
				for range 2 {
					w.mustPass("web")
				}
				if writes := writesOf(w.calls()); len(writes) > 0 {
					t.Errorf("%s: writes %v", after, writes)
				}
				if condition := w.synced("web"); condition.Reason != problem.ReasonPaused || condition.Status != status ||
					!strings.Contains(condition.Message, naming) {
					t.Errorf("%s: condition %+v, want %s that names %q", after, condition, status, naming)
				}
			}
			still("new", metav1.ConditionFalse, "create load balancer")
			if svc := w.get("web"); len(svc.Finalizers) > 0 {
				t.Errorf("finalizers %v: the Service has nothing in the cloud", svc.Finalizers)
			}
			pause.end()
			w.mustPass("web")
			if len(w.listenerKeys()) != 1 || len(w.get("web").Finalizers) == 0 {
				t.Fatalf("listeners %v, finalizers %v", w.listenerKeys(), w.get("web").Finalizers)
			}
			pause.begin()
			still("nothing to do", metav1.ConditionTrue, "matches")
			address := w.get("web").Status.LoadBalancer.Ingress[0].IP

			w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP)) })
			still("another port", metav1.ConditionFalse, "tcp:81")
			w.deleteListener(w.get("web").Labels[driver.LabelLoadBalancerID], 80)
			w.drift("web")
			still("deleted by hand", metav1.ConditionFalse, "tcp:80")
			if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].IP != address {
				t.Errorf("ingress %v, want %s as before", ingress, address)
			}
			if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool {
				return strings.HasPrefix(e, "Normal Paused") && strings.Contains(e, "tcp:80")
			}) {
				t.Errorf("events %q, want one about the pause that names tcp:80", events)
			}
			pause.end()
			w.mustPass("web")
			if got := w.listenerKeys(); !slices.Equal(got, []string{"tcp:80", "tcp:81"}) || w.synced("web").Reason != problem.ReasonEnsured {
				t.Errorf("listeners %v, condition %+v after the pause", got, w.synced("web"))
			}
			pause.begin()
			w.change("web", deleteService)
			still("deleted", metav1.ConditionFalse, "stay")
			pause.end()
			w.mustPass("web")
			if svc := w.get("web"); len(svc.Finalizers) > 0 || len(w.state()) > 0 {
				t.Errorf("finalizers %v, load balancers %v after the pause", svc.Finalizers, w.state())
			}
		})
	}
}

// TestPauseShowsWhatElseIsWrong: the condition of a paused Service does not hide that its author has to change something.
func TestPauseShowsWhatElseIsWrong(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.change("web", func(svc *corev1.Service) {
		svc.Annotations[driver.AnnotationPaused] = "true"
		annotate(svc, annotation.Scheduler, "fastest")
	})
	w.mustPass("web")
	if condition := w.synced("web"); condition.Status != metav1.ConditionFalse || condition.Reason != problem.ReasonPaused ||
		!strings.Contains(condition.Message, "fastest") {
		t.Errorf("condition %+v, want one that names the pause and the annotation", condition)
	}
}
