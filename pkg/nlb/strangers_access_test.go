package nlb

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestUsersOfASecurityGroupHoldNoService: the NLB of somebody else joins the security group that the manager made for the source ranges of
// a Service. The Service is released after the bound, and the security group stays.
func TestUsersOfASecurityGroupHoldNoService(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
		lb := w.balancer("web")
		w.put(newService("thief", testkube.TCP(81), with(annotation.SecurityGroupIDs, strings.Join(lb.SecurityGroups, ","))))
		w.converge("thief")
		w.remove("web")
		w.newEvents()
		begun, passes := time.Now(), 0
		testkit.Passes(waits.InUse+10*time.Minute, func() (time.Duration, error) {
			passes++
			w.fillServices()
			if !driver.HasFinalizer(w.get("web"), Finalizer) {
				return time.Hour, nil
			}
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			if !driver.HasFinalizer(w.get("web"), Finalizer) {
				t.Logf("released after %v, %d passes", time.Since(begun), passes)
			}
			return wait, err
		})
		said := 0
		events := w.newEvents()
		for _, event := range events {
			if strings.Contains(event, "KeptInUse") && strings.Contains(event, lb.SecurityGroups[0]) {
				said++
			}
		}
		if w.exists(lb.ID) || driver.HasFinalizer(w.get("web"), Finalizer) || said != 1 {
			t.Errorf("the NLB is there: %v, finalizers %v, events %q", w.exists(lb.ID), w.get("web").Finalizers, events)
		}
		if thief := w.balancer("thief"); len(w.listeners(thief.ID)) != 1 || strings.Join(thief.SecurityGroups, ",") != lb.SecurityGroups[0] {
			t.Errorf("the other NLB: listeners %v, security groups %v", w.listeners(thief.ID), thief.SecurityGroups)
		}
	})
}
