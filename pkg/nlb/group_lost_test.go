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

// TestLostCreationIsLeft: the answer to the creation of an NLB of the Service's own is lost, or the process ends there. At once, the
// Service is to be elsewhere, or is deleted, while no search shows the NLB yet. It does not stay in the cloud.
func TestLostCreationIsLeft(t *testing.T) {
	t.Parallel()
	const searches = 2 // by tag and by name
	existing := func(svc *corev1.Service, id string) {
		with(annotation.LoadBalancerID, id)(svc)
		with(annotation.ForceOverrideListeners, "true")(svc)
	}
	redirects := map[string]func(svc *corev1.Service, mine string){
		"back":     func(svc *corev1.Service, _ string) { with(annotation.Group, "edge")(svc) },
		"other":    func(svc *corev1.Service, _ string) { with(annotation.Group, "other")(svc) },
		"new":      func(svc *corev1.Service, _ string) { with(annotation.Group, "third")(svc) },
		"existing": existing,
	}
	// mistakes are what the author of the Service corrects a minute later.
	mistakes := map[string]func(w *world) string{
		"missing": func(*world) string { return "nlb-nowhere" },
		"refused": func(w *world) string {
			w.groupWorld(newService("other", testkit.TCP(83)))
			return w.balancers("other")[0].ID
		},
	}
	for mistake := range mistakes {
		redirects[mistake] = existing
	}
	for row, where := range slices.Sorted(maps.Keys(redirects)) {
		redirect := redirects[where]
		for i, ends := range []bool{false, true} {
			for j, from := range []string{"new", "group", "existing"} {
				if !testkit.Tried(row+i+j, 3) {
					continue
				}
				t.Run(fmt.Sprintf("%s, process ends %v, %s", where, ends, from), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						places := []string{w.existing("mine")}
						if mistake, ok := mistakes[where]; ok {
							places = []string{mistake(w), places[0]}
						}
						w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(81)), grouped("blog", "other", 1, testkit.TCP(82)))
						web := newService("web", testkit.TCP(80), born(2))
						switch from {
						case "new":
							w.put(web)
						case "group":
							with(annotation.Group, "edge")(web)
							w.groupWorld(web)
							w.change("web", without(annotation.Group))
						case "existing":
							existing(web, w.existing("before"))
							w.groupWorld(web)
							w.change("web", without(annotation.LoadBalancerID))
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
						for _, at := range places {
							w.change("web", func(svc *corev1.Service) { redirect(svc, at) })
							w.tries(20, "web")
							time.Sleep(time.Minute)
							w.tries(5, "web")
						}
						if len(w.balancers("web")) > 0 {
							t.Errorf("the NLB whose creation was not answered stays: %v", w.ownersOf())
						}
						if !slices.ContainsFunc(slices.Collect(maps.Values(w.ownersOf())), func(owners []string) bool {
							return slices.Contains(owners, "tcp:80 web")
						}) {
							t.Errorf("the Service is nowhere: %v", w.ownersOf())
						}
					})
				})
			}
		}
	}
}
