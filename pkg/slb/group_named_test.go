package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestGroupNamedFromElsewhere: a Service names the CLB of a group by its ID, and stays on a CLB of its own or an existing one. It does not
// keep that of the group, which goes with the last Service of that.
func TestGroupNamedFromElsewhere(t *testing.T) {
	t.Parallel()
	befores := map[string]func(w *world, mine string) *corev1.Service{
		"own": func(*world, string) *corev1.Service { return testService("web", 80) },
		"own, with Record": func(*world, string) *corev1.Service {
			svc := testService("web", 80)
			annotate(svc, annotation.Scheduler, "wlc")
			return svc
		},
		"existing": func(_ *world, mine string) *corev1.Service { return reusing("web", mine, "true", 80) },
	}
	for what, before := range befores {
		for when, then := range knownOrNot() {
			for _, seen := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, had a pass %v", what, when, seen), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					threeNodes(w)
					mine := w.makeCLB()
					w.putAll(grouped("shop", "edge", 81), before(w, mine.ID))
					id, shown := w.get("shop").Labels[driver.LabelLoadBalancerID], w.address("web")
					w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, id) })
					then(w)
					if seen {
						w.passes("web", 2)
					}
					w.change("shop", deleteService)
					w.passes("shop", 3)
					if _, left := w.state()[edgeCLB]; left {
						t.Errorf("the CLB of the group stays; events %v", w.newEvents())
					}
					w.passes("web", 2)
					if now := w.address("web"); now != shown || !w.answers("web", now) {
						t.Errorf("the status shows %s, want %s, which serves", now, shown)
					}
				})
			}
		}
	}
}
