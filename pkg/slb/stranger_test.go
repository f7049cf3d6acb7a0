package slb

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestDeletionLeavesAStranger: the CLB that the label names has lost its owner tag and its name, and another CLB, on which nothing is the
// Service's, has a copy of the tag. The deletion removes what is the Service's from the first, says that it stays, and leaves the other one
// alone.
func TestDeletionLeavesAStranger(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			id := w.get("web").Labels[driver.LabelLoadBalancerID]
			stranger := w.makeTwin("web")
			w.takenOver(id)
			then(w)
			w.newEvents()
			w.change("web", deleteService)
			w.mustPass("web")
			if _, err := w.api.DescribeLoadBalancer(t.Context(), stranger.ID); err != nil {
				t.Errorf("CLB %s, which the Service never used: %v", stranger.ID, err)
			}
			events := strings.Join(w.newEvents(), "\n")
			if !strings.Contains(events, problem.ReasonLoadBalancerKept) || !strings.Contains(events, id) {
				t.Errorf("events %q, want %s for %s", events, problem.ReasonLoadBalancerKept, id)
			}
			if groups, err := w.api.DescribeVServerGroups(t.Context(), id); err != nil || len(groups) > 0 {
				t.Errorf("vServer groups %v, %v on %s, want none", groups, err, id)
			}
			if finalizers := w.get("web").Finalizers; len(finalizers) > 0 {
				t.Errorf("finalizers %v, want none", finalizers)
			}
		})
	}
}
