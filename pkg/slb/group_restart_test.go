package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestBegunPlaceOfAGroupIsLeft: a process ends after it has created the vServer group of a new Service, and before its listener. By the time of the next
// one, an older Service has taken the port. The new Service gets it on another CLB, and leaves nothing behind.
func TestBegunPlaceOfAGroupIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(born(grouped("first", "edge", 80), 0))
	w.mustPass("first")
	w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "Forbidden.RAM", "status": 403})
	w.put(born(overflowing(grouped("second", "edge", 81)), 1))
	if err := w.pass("second"); err == nil {
		t.Fatal("the listener was created")
	}
	w.change("first", func(svc *corev1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, testkit.Port(81, corev1.ProtocolTCP))
	})
	w.clearFaults()
	w.restart()
	for range 4 {
		_, _ = w.pass("first"), w.pass("second")
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 first", "tcp:81 first"}, edgeCLB + "+": {"tcp:81 second"}})
	groups := 0
	for _, lb := range w.state() {
		groups += len(lb.Groups)
	}
	if groups != 3 {
		t.Errorf("%d vServer groups for 3 listeners", groups)
	}
	w.silent("afterwards", "first", "second")
}
