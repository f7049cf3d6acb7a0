package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestUnlabeledServiceJoinsAGroup: while no manager runs, a Service is put into a group, and loses the label with the ID of its CLB. It
// leaves nothing there: its Record, or the address that it shows, names the CLB.
func TestUnlabeledServiceJoinsAGroup(t *testing.T) {
	t.Parallel()
	befores := map[string]func(svc *corev1.Service){
		"shown":    func(*corev1.Service) {},
		"recorded": func(svc *corev1.Service) { annotate(svc, annotation.Scheduler, "wrr") },
	}
	for what, before := range befores {
		for _, alone := range []bool{false, true} {
			for _, own := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, alone %v, own %v", what, alone, own), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					threeNodes(w)
					want := map[string][]string{edgeCLB: {"tcp:80 web"}, "mine": {}}
					mine := w.makeCLB()
					if !alone {
						w.putAll(grouped("shop", "edge", 81))
						want[edgeCLB] = append(want[edgeCLB], "tcp:81 shop")
					}
					web := reusing("web", mine.ID, "true", 80)
					if own {
						web = testService("web", 80)
					}
					before(web)
					w.putAll(web)
					w.restart()
					w.change("web", func(svc *corev1.Service) {
						svc.Annotations = grouped("web", "edge", 80).Annotations
						delete(svc.Labels, driver.LabelLoadBalancerID)
						if what == "recorded" {
							svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "web.example.com"}}
						}
					})
					w.passes("web", 6)
					wantOwners(t, w, want)
				})
			}
		}
	}
}
