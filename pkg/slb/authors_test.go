package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNamingKeepsNoCLB: a Service of another namespace names the CLB of a Service by ID. It gets nothing there, and the CLB goes with the
// Service.
func TestNamingKeepsNoCLB(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	thief := reusing("thief", w.onlyCLB(), "true", 81)
	thief.Namespace = "team-b"
	services := w.kube.CoreV1().Services(thief.Namespace)
	_, err := services.Create(t.Context(), thief, metav1.CreateOptions{})
	w.must(err)
	steal := func() *corev1.Service {
		for range 3 {
			svc, err := services.Get(t.Context(), thief.Name, metav1.GetOptions{})
			w.must(err)
			_, _ = w.Reconcile(t.Context(), svc) //nolint:errcheck // it is refused
		}
		svc, err := services.Get(t.Context(), thief.Name, metav1.GetOptions{})
		w.must(err)
		return svc
	}
	steal()
	wantOwners(t, w, map[string][]string{"a0f5e8a1cweb": {"tcp:80 web"}})
	w.change("web", deleteService)
	w.passes("web", 3)
	if svc := steal(); len(w.lbs()) > 0 || len(w.get("web").Finalizers) > 0 || len(svc.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("CLBs %v, finalizers %v, status %v", w.lbs(), w.get("web").Finalizers, svc.Status)
	}
}
