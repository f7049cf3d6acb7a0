package slb

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNobodyElseKeepsTheCLBOfAGroup: a Service of a namespace that may not join a group names its CLB by ID. It gets nothing there, and the
// CLB goes with the last Service of the group.
func TestNobodyElseKeepsTheCLBOfAGroup(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80))
	thief := reusing("thief", w.onlyCLB(), "true", 81)
	thief.Namespace = "team-b"
	_, err := w.kube.CoreV1().Services(thief.Namespace).Create(t.Context(), thief, metav1.CreateOptions{})
	w.must(err)
	stolen := func() {
		t.Helper()
		w.fillGroups()
		svc, err := w.kube.CoreV1().Services(thief.Namespace).Get(t.Context(), thief.Name, metav1.GetOptions{})
		w.must(err)
		_, _ = w.Reconcile(t.Context(), svc) //nolint:errcheck // it is refused
	}
	stolen()
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web"}})
	w.change("web", deleteService)
	w.passes("web", 3)
	stolen()
	wantOwners(t, w, map[string][]string{})
	if svc, err := w.kube.CoreV1().Services(thief.Namespace).Get(t.Context(), thief.Name, metav1.GetOptions{}); err != nil ||
		len(svc.Status.Conditions) > 1 || len(svc.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("%v, status %+v", err, svc.Status)
	}
}
