package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestDeletionAgainTakesNoCLBOfTheGroup: a Service with a CLB of its own is deleted, and the process ends at any write of that. It was in
// the group before, or asks for it and lacks its port there. The next process finds no CLB of the Service any more, and deletes none of the
// group in its place, also if nobody is on that.
func TestDeletionAgainTakesNoCLBOfTheGroup(t *testing.T) {
	t.Parallel()
	for _, wasIn := range []bool{false, true} {
		for _, preserves := range []bool{false, true} {
			for died := range 4 {
				t.Run(fmt.Sprintf("was in %v, preserves %v, %d writes", wasIn, preserves, died+1), func(t *testing.T) {
					t.Parallel()
					w := groupWorld(t, grouped("shop", "edge", 80))
					if wasIn {
						w.putAll(born(grouped("web", "edge", 81), 1))
						w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) })
					} else {
						w.putAll(born(testService("web", 80), 1))
						w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
					}
					w.passes("web", 4)
					w.makeCLB(alicloud.Tag{Key: mark.TagGroup, Value: "c1/default/edge"})
					w.change("web", func(svc *corev1.Service) {
						deleteService(svc)
						annotate(svc, annotation.PreserveOnDelete, fmt.Sprint(preserves))
					})
					w.transport.limit, w.transport.writes = died+1, 0
					_ = w.pass("web")
					w.restart()
					w.passes("web", 4)
					want := map[string][]string{edgeCLB: {"tcp:80 shop"}, "mine": {}}
					if preserves {
						want["a0f5e8a1cweb"] = []string{fmt.Sprintf("tcp:%d web", w.get("web").Spec.Ports[0].Port)}
					}
					wantOwners(t, w, want)
					unused := w.balancer("mine")
					if _, preserved := unused.Tag(mark.TagPreserved); preserved {
						t.Error("the CLB on which nobody is counts as preserved")
					}
					if held := w.get("web").Finalizers; len(held) > 0 {
						t.Errorf("finalizers %v stay", held)
					}
				})
			}
		}
	}
}
