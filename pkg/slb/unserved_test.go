package slb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func onlySCTP(svc *corev1.Service) {
	svc.Spec.Ports = []corev1.ServicePort{testPort(90, corev1.ProtocolSCTP)}
}

// TestServiceWithoutAServablePort costs nothing: one event that says what is accepted, no CLB, nothing on an existing CLB,
// and no list of source ranges. What is corrected is served; what never was there is deleted without a write.
func TestServiceWithoutAServablePort(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, event string
		service     func(*world) *corev1.Service
		repair      func(*corev1.Service)
	}{
		{"SCTP", `"SCTP" of port 90 is not accepted; accepted: TCP, UDP; no port can be served, so no CLB is created`,
			func(*world) *corev1.Service {
				svc := restricted("192.0.2.0/24")
				onlySCTP(svc)
				return svc
			}, func(svc *corev1.Service) { svc.Spec.Ports = []corev1.ServicePort{testPort(90, corev1.ProtocolTCP)} }},
		{"no node port", "port 80 has no node port", func(*world) *corev1.Service {
			svc := testService("web", 80)
			svc.Spec.Ports[0].NodePort = 0
			return svc
		}, func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 30080 }},
		{"SCTP on an existing CLB", "so the CLB has no listeners of the Service", func(w *world) *corev1.Service {
			svc := reusing("web", w.makeCLB().ID, "true")
			annotate(svc, annotation.AdditionalTags, "a=1")
			onlySCTP(svc)
			return svc
		}, func(svc *corev1.Service) { svc.Spec.Ports = []corev1.ServicePort{testPort(90, corev1.ProtocolTCP)} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.put(test.service(w))
			for range 2 {
				w.mustPass("web")
				w.drift("web")
			}
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("writes %v, want none", writes)
			}
			if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonFeatureNotSupported) ||
				!strings.Contains(events[0], test.event) {
				t.Errorf("events %q, want one %s with %q", events, problem.ReasonFeatureNotSupported, test.event)
			}
			if condition := w.synced("web"); condition.Status != metav1.ConditionFalse || condition.Reason != problem.ReasonFeatureNotSupported ||
				!strings.Contains(condition.Message, test.event) {
				t.Errorf("condition %+v, want the reason in it", condition)
			}
			original := w.get("web").Spec.Ports
			w.change("web", test.repair)
			w.converge("web")
			if keys := w.listenerKeys(); len(keys) != 1 || w.synced("web").Status != metav1.ConditionTrue {
				t.Errorf("listeners %v, condition %+v after the ports were repaired", keys, w.synced("web"))
			}
			w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = original })
			w.converge("web")
			w.change("web", deleteService)
			w.mustPass("web")
			if svc := w.get("web"); len(svc.Finalizers) != 0 {
				t.Errorf("finalizers %v after the deletion", svc.Finalizers)
			}
		})
	}
}

// TestDeletionOfAServiceThatNeverHadACLB writes nothing to the cloud.
func TestDeletionOfAServiceThatNeverHadACLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	svc := testService("web")
	onlySCTP(svc)
	w.put(svc)
	w.mustPass("web")
	w.change("web", deleteService)
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 || len(w.get("web").Finalizers) != 0 {
		t.Errorf("writes %v, finalizers %v; want none", writes, w.get("web").Finalizers)
	}
}

// TestServiceThatLosesItsLastServablePort: the CLB keeps its address without listeners, one event says so, the old port
// comes back with the same address, and a CLB that somebody deletes in the meantime is not made anew.
func TestServiceThatLosesItsLastServablePort(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	served := w.get("web")
	w.change("web", onlySCTP)
	for range 2 {
		w.converge("web")
		w.drift("web")
	}
	lb := w.state()["a0f5e8a1cweb"]
	if len(lb.Listeners)+len(lb.Groups) != 0 || lb.DeleteProtection != "on" {
		t.Errorf("CLB %+v, want it without listeners and groups", lb)
	}
	warnings := strings.Join(w.newEvents(), "\n")
	if strings.Count(warnings, "Warning") != 1 || !strings.Contains(warnings, "the CLB keeps its address, has no listeners") {
		t.Errorf("events %q, want one warning that names the CLB", warnings)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = served.Spec.Ports })
	w.converge("web")
	if diff := cmp.Diff(served.Status.LoadBalancer, w.get("web").Status.LoadBalancer); diff != "" || len(w.listenerKeys()) != 1 {
		t.Errorf("listeners %v, address (-before +after):\n%s", w.listenerKeys(), diff)
	}
	w.change("web", onlySCTP)
	w.converge("web")
	w.removeCLB()
	w.drift("web")
	w.converge("web")
	if state := w.state(); len(state) != 0 {
		t.Errorf("a CLB without listeners was made: %v", state)
	}
}
