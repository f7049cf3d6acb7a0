package nlb

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestLostCreationIsLeft: the answer to the creation of an NLB of the Service's own is lost, or the process ends there. At once, the Service is to be elsewhere, or is
// deleted, while no search shows the NLB yet. It does not stay in the cloud.
func TestLostCreationIsLeft(t *testing.T) {
	t.Parallel()
	const searches = 2 // by tag and by name
	redirects := map[string]func(svc *corev1.Service, mine string){
		"back":  func(svc *corev1.Service, _ string) { with(annotation.Group, "edge")(svc) },
		"other": func(svc *corev1.Service, _ string) { with(annotation.Group, "other")(svc) },
		"new":   func(svc *corev1.Service, _ string) { with(annotation.Group, "third")(svc) },
		"existing": func(svc *corev1.Service, mine string) {
			with(annotation.LoadBalancerID, mine)(svc)
			with(annotation.ForceOverrideListeners, "true")(svc)
		},
	}
	for where, redirect := range redirects {
		for _, ends := range []bool{false, true} {
			for _, isNew := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, process ends %v, new %v", where, ends, isNew), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						mine := w.existing("mine")
						w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(81)), grouped("blog", "other", 1, testkit.TCP(82)))
						if web := newService("web", testkit.TCP(80), born(2)); isNew {
							w.put(web)
						} else {
							with(annotation.Group, "edge")(web)
							w.groupWorld(web)
							w.change("web", without(annotation.Group))
						}
						if ends {
							w.transport.diesAfter(1)
						} else {
							w.account.Fault(`{"action":"CreateLoadBalancer","drop":"after","times":1}`)
						}
						w.fillServices()
						if _, err := w.Reconcile(t.Context(), w.get("web")); err == nil {
							t.Fatal("the creation was answered")
						}
						w.account.Fault(fmt.Sprintf(noBalancers, searches))
						if ends {
							w.restart()
						}
						w.change("web", func(svc *corev1.Service) { redirect(svc, mine) })
						w.tries(20, "web")
						time.Sleep(time.Minute)
						w.tries(5, "web")
						if len(w.balancers("web")) > 0 {
							t.Errorf("the NLB whose creation was not answered stays: %v", w.ownersOf())
						}
						if !slices.ContainsFunc(slices.Collect(maps.Values(w.ownersOf())), func(owners []string) bool { return slices.Contains(owners, "tcp:80 web") }) {
							t.Errorf("the Service is nowhere: %v", w.ownersOf())
						}
					})
				})
			}
		}
	}
}
