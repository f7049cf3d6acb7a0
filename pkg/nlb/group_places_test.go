package nlb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestReturnedServiceUsesNoFormerGroup: a Service of a group that becomes a ClusterIP and comes back with an NLB of its own does not keep the NLB of the group.
func TestReturnedServiceUsesNoFormerGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(_ *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 0, testkit.TCP(80)), grouped("shop", "edge", 1, testkit.TCP(81)))
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		})
		w.fillServices()
		w.converge("web")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer }, testkit.Class(Class), without(annotation.Group))
		w.fillServices()
		w.converge("web")
		w.delete("shop")
		w.wantOwners(map[string][]string{ownNLB: {"tcp:80 web"}})
	})
}

// TestMoveIntoAGroupLeavesATwin: a Service with an NLB of its own joins a group after a restart. Another NLB with a copy of its owner tag stays.
func TestMoveIntoAGroupLeavesATwin(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(81)), newService("web", testkit.TCP(80), born(1)))
		twin := w.makeTwin("web")
		w.restart()
		w.change("web", with(annotation.Group, "edge"))
		w.tries(6, "web")
		if owners := w.ownersOf(); !w.exists(twin) || len(owners[edgeNLB]) != 2 || owners[ownNLB] != nil {
			t.Errorf("NLBs %v, the one with a copy of the tag is there: %v", owners, w.exists(twin))
		}
	})
}

// TestPreservingServiceGivesUpItsPort: a Service that moves to the next NLB of its group, because an older one has a claim to its port, leaves no listener, although
// its annotation asks to keep the NLB when the Service is deleted.
func TestPreservingServiceGivesUpItsPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(_ *testing.T, w *world) {
		w.groupWorld(grouped("young", "edge", 1, testkit.TCP(80), with(annotation.GroupOverflow, "true"), with(annotation.PreserveOnDelete, "true")))
		w.put(grouped("old", "edge", 0, testkit.TCP(80)))
		w.tries(8, "old", "young")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 old"}, edgeNLB + "+": {"tcp:80 young"}})
	})
}
