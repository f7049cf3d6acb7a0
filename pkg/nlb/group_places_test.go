package nlb

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestReturnedServiceUsesNoFormerGroup: a Service of a group that becomes a ClusterIP and comes back with an NLB of its own does not keep
// the NLB of the group.
func TestReturnedServiceUsesNoFormerGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(_ *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 0, testkit.TCP(80)), grouped("shop", "edge", 1, testkit.TCP(81)))
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		})
		w.fillServices()
		w.converge("web")
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.Type = corev1.ServiceTypeLoadBalancer
		}, testkit.Class(Class), without(annotation.Group))
		w.fillServices()
		w.converge("web")
		w.delete("shop")
		w.wantOwners(map[string][]string{ownNLB: {"tcp:80 web"}})
	})
}

// TestMoveIntoAGroupLeavesATwin: a Service with an NLB of its own joins a group after a restart. Another NLB with a copy of its owner tag
// stays.
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

// TestPreservingServiceGivesUpItsPort: a Service that moves to the next NLB of its group, because an older one has a claim to its port,
// leaves no listener, although its annotation asks to keep the NLB when the Service is deleted.
func TestPreservingServiceGivesUpItsPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(_ *testing.T, w *world) {
		w.groupWorld(grouped("young", "edge", 1, testkit.TCP(80), with(annotation.GroupOverflow, "true"),
			with(annotation.PreserveOnDelete, "true")))
		w.put(grouped("old", "edge", 0, testkit.TCP(80)))
		w.tries(8, "old", "young")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 old"}, edgeNLB + "+": {"tcp:80 young"}})
	})
}

// TestOutsideOfItsGroupTakesItsOwnNLBAlong: a Service that stays on an NLB of its own, because another one has its port in the group, is
// deleted while nobody uses an NLB of the group. Its own one goes, or is marked as preserved.
func TestOutsideOfItsGroupTakesItsOwnNLBAlong(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		for _, preserves := range []bool{false, true} {
			t.Run(fmt.Sprintf("restarted %v, preserves %v", restarted, preserves), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(80)),
						newService("web", testkit.TCP(80), born(1), with(annotation.PreserveOnDelete, strconv.FormatBool(preserves))))
					w.change("web", with(annotation.Group, "edge"))
					w.tries(3, "web")
					unused, tags := w.existing("mine"), []alicloud.Tag{{Key: mark.TagGroup, Value: "c1/default/edge"}}
					testkit.Check(t, w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{unused}, tags))
					if restarted {
						w.restart()
					}
					w.remove("web")
					w.tries(8, "web")
					var preserved []string
					for _, lb := range testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t) {
						if hasTag(&lb, mark.TagPreserved) {
							preserved = append(preserved, lb.Name)
						}
					}
					want, wantPreserved := map[string][]string{edgeNLB: {"tcp:80 shop"}, "mine": {}}, []string(nil)
					if preserves {
						want[ownNLB], wantPreserved = []string{"tcp:80 web"}, []string{ownNLB}
					}
					if w.wantOwners(want); !slices.Equal(preserved, wantPreserved) {
						t.Errorf("preserved are %v, not %v", preserved, wantPreserved)
					}
				})
			})
		}
	}
}
