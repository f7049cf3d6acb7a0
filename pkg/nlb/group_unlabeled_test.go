package nlb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestUnlabeledServiceJoinsAGroup: while no manager runs, a Service is put into a group, and loses the label with the ID of its NLB. It
// leaves nothing there.
func TestUnlabeledServiceJoinsAGroup(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		for _, own := range []bool{false, true} {
			for _, tagged := range []bool{false, true} {
				t.Run(fmt.Sprintf("alone %v, own %v, tagged %v", alone, own, tagged), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						mine := w.existing("mine")
						want := map[string][]string{edgeNLB: {"tcp:80 web"}, "mine": {}}
						if !alone {
							w.groupWorld(grouped("shop", "edge", 1, testkit.TCP(81)))
							want[edgeNLB] = append(want[edgeNLB], "tcp:81 shop")
						}
						web := newService("web", testkit.TCP(80), born(2))
						if !own {
							web = newService("web", testkit.TCP(80), born(2), with(annotation.LoadBalancerID, mine),
								with(annotation.ForceOverrideListeners, "true"))
						}
						if tagged {
							with(annotation.AdditionalTags, "a=b")(web)
						}
						w.groupWorld(web)
						w.restart()
						w.change("web", func(svc *corev1.Service) {
							svc.Annotations = grouped("web", "edge", 2).Annotations
							delete(svc.Labels, driver.LabelLoadBalancerID)
						})
						w.tries(12, "web")
						w.wantOwners(want)
						if lb, err := w.account.Client.GetNLB(t.Context(), mine); err != nil || len(lb.Tags) > 1 {
							t.Errorf("the existing NLB has the tags %v (%v)", lb.Tags, err)
						}
					})
				})
			}
		}
	}
}
