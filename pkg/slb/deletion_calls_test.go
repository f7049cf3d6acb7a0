package slb

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestCallsOfDeletionFromAGroup: a Service leaves the CLB that others of its group use with its two writes, and one read each of the
// listeners and the groups that shows that nothing of it is left. An access control list is read where there may be one.
func TestCallsOfDeletionFromAGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		lists  bool
	}{
		"plain":         {func(*corev1.Service) {}, false},
		"source ranges": {func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			web := grouped("web", "edge", 80)
			test.change(web)
			w.putAll(web, grouped("shop", "edge", 81))
			w.fillGroups()
			w.mustPass("web")
			w.calls()
			w.change("web", deleteService)
			w.fillGroups()
			w.mustPass("web")
			calls := w.calls()
			lists := slices.ContainsFunc(calls, func(c string) bool { return c == "DescribeAccessControlLists" || c == "DeleteAccessControlList" })
			if lists != test.lists || !test.lists && len(calls) > 4 {
				t.Errorf("%d calls: %v", len(calls), calls)
			}
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 shop"}})
			if held := w.get("web").Finalizers; len(held) > 0 {
				t.Errorf("finalizers %v", held)
			}
		})
	}
}
