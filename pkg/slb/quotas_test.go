package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestQuotaOfListenersIsNotAskedForEachPort: once the quota of listeners is used up, the other ports make no calls, and neither does the
// next pass but one. What makes room, or another wish, is tried at once.
func TestQuotaOfListenersIsNotAskedForEachPort(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: 3})
	threeNodes(w)
	ports := make([]int32, 20)
	for i := range ports {
		ports[i] = int32(80 + i)
	}
	w.put(testService("web", ports...))
	creations := func() (n int) {
		for _, call := range w.calls() {
			if call == "CreateLoadBalancerTCPListener" || len(call) > 29 && call[:30] == "CreateLoadBalancerTCPListener=" {
				n++
			}
		}
		return n
	}
	pass := func() int {
		w.calls()
		if err := w.pass("web"); err == nil {
			t.Fatal("the pass succeeded")
		}
		return creations()
	}
	if n := pass(); n != 4 {
		t.Errorf("first pass: %d calls, want 3 that are accepted and one that is refused", n)
	}
	pass()
	pass()
	if n := pass(); n != 0 {
		t.Errorf("a later pass: %d calls, want none", n)
	}
	if err := w.api.DeleteListener(t.Context(), w.onlyCLB(), alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}); err != nil {
		t.Fatal(err)
	}
	w.drift("web")
	if n := pass(); n != 2 {
		t.Errorf("after a listener was deleted by hand: %d calls, want one that is accepted and one that is refused", n)
	}
}

// TestRoomOfANeighbourIsUsed: on a CLB that two Services share, what one of them deletes makes room for what the other one was refused.
func TestRoomOfANeighbourIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: 3})
	threeNodes(w)
	w.makeCLB()
	id := w.onlyCLB()
	w.put(reusing("web", id, "true", 80, 81))
	w.mustPass("web")
	w.put(reusing("shop", id, "true", 90, 91))
	for range 4 { // until the refusal is waited for
		if err := w.pass("shop"); err == nil {
			t.Fatal("the pass succeeded")
		}
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
	w.mustPass("web")
	w.mustPass("shop")
}
