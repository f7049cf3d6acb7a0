package nlb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestLastTwoOfAGroupGoAtOnce: the last Services of a group go at the same time, and the cache still shows the one of them with its
// finalizer that has just left the NLB. The other one deletes the NLB: else nobody would.
func TestLastTwoOfAGroupGoAtOnce(t *testing.T) {
	t.Parallel()
	for what, goes := range map[string]func(*world, string){
		"deleted": (*world).remove,
		"type": func(w *world, name string) {
			w.change(name, func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(what+map[bool]string{true: ", restart"}[restarts], func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("web", "edge", 1, testkit.TCP(80)), grouped("shop", "edge", 2, testkit.TCP(81)))
					goes(w, "web")
					goes(w, "shop")
					w.fillServices()
					w.converge("web")
					if restarts {
						w.fillServices() // as that of a new process
						w.restart()
					}
					w.converge("shop")
					for _, name := range []string{"web", "shop"} {
						if held := w.get(name).Finalizers; len(held) > 0 {
							t.Errorf("finalizers %v hold %s", held, name)
						}
					}
					w.leavesNothing()
				})
			})
		}
	}
}
