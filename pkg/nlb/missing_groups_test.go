package nlb

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestMissingSecurityGroupIsTheAuthorsMatter: the event and the condition say which annotation names a security group that does not exist,
// whether the load balancer is to be created with it or is to join it, and also beside the group of loadBalancerSourceRanges. Without the
// annotation the Service is served.
func TestMissingSecurityGroupIsTheAuthorsMatter(t *testing.T) {
	t.Parallel()
	ranges := func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }
	none := func(*corev1.Service) {}
	for _, c := range []struct {
		name   string
		exists bool
		more   func(*corev1.Service)
	}{
		{"creation", false, none}, {"creation with source ranges", false, ranges}, {"join", true, none},
		{"join with source ranges", true, ranges},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				if c.exists {
					w.serve(1, testkube.TCP(80))
					w.newEvents()
					w.change("web", with(annotation.SecurityGroupIDs, "sg-none"), c.more)
				} else {
					w.addNodes("n1")
					w.put(newService("web", testkube.TCP(80), with(annotation.SecurityGroupIDs, "sg-none"), c.more))
				}
				w.passes("web", time.Minute)
				want := fmt.Sprintf("%s: %q names a security group that does not exist", annotation.SecurityGroupIDs, "sg-none")
				for _, event := range w.newEvents() {
					if strings.HasPrefix(event, "Warning") &&
						(!strings.HasPrefix(event, "Warning "+problem.ReasonInvalidAnnotation) || !strings.Contains(event, want)) {
						t.Errorf("event %q, want only %s with %q", event, problem.ReasonInvalidAnnotation, want)
					}
				}
				condition := meta.FindStatusCondition(w.get("web").Status.Conditions, service.ConditionSynced)
				if condition == nil || condition.Reason != problem.ReasonInvalidAnnotation || !strings.Contains(condition.Message, want) {
					t.Errorf("condition %+v, want the reason %s with %q", condition, problem.ReasonInvalidAnnotation, want)
				}
				w.change("web", without(annotation.SecurityGroupIDs))
				w.converge("web")
				if got := len(w.listeners(w.balancer("web").ID)); got != 1 {
					t.Errorf("%d listeners, want 1", got)
				}
			})
		})
	}
}
