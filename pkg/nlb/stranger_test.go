package nlb

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestDeletionLeavesAStranger: the NLB that the label names has lost its owner tag, or the search by tag lacks it, and another NLB, on which nothing is the
// Service's, has a copy of the tag. The deletion leaves the other one alone, and says that the first stays.
func TestDeletionLeavesAStranger(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(map[bool]string{false: "known", true: "after a restart"}[restarted], func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkit.TCP(80))
				id := w.get("web").Labels[service.LabelLoadBalancerID]
				stranger := w.makeTwin("web")
				testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []string{mark.TagOwner}))
				if restarted {
					w.restart()
				}
				w.newEvents()
				w.remove("web")
				w.converge("web")
				if !w.exists(stranger) {
					t.Errorf("NLB %s is gone, which the Service never used", stranger)
				}
				if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerKept) || !strings.Contains(events, id) {
					t.Errorf("events %q, want %s for %s", events, problem.ReasonLoadBalancerKept, id)
				}
			})
		})
	}
}
