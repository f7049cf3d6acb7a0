package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestPlanOfSubsets: the plan is what the manager then does, also where the nodes of one Service depend on those of others. Where the pass
// that follows adds nodes in place of those that are gone, it is the first one.
func TestPlanOfSubsets(t *testing.T) {
	t.Parallel()
	const removes = ": remove backends"
	first := map[string][]string{
		"a node leaves":   {"s0" + removes, "s2" + removes, "s5" + removes, "s8" + removes},
		"two nodes leave": {"s0" + removes, "s2" + removes, "s5" + removes, "s7" + removes, "s8" + removes},
	}
	fixed := func(svc *corev1.Service) *corev1.Service {
		annotate(svc, annotation.BackendSubset, "3")
		return svc
	}
	for name, change := range map[string]func(*world){
		"nothing changes": func(*world) {},
		"a node leaves":   func(w *world) { w.deleteNode("n0") },
		"two nodes leave": func(w *world) { w.deleteNode("n0"); w.deleteNode("n1") },
		"a Service comes": func(w *world) { w.put(born(testService("new", 80), 100)) },
		"three Services come": func(w *world) {
			for i := range 3 {
				w.put(born(testService(fmt.Sprint("new", i), 80), int64(100+i)))
			}
		},
		"a Service goes":         func(w *world) { w.change("s3", deleteService) },
		"a Service with 3 comes": func(w *world) { w.put(born(fixed(testService("new", 80)), 100)) },
		"a Service gets 3":       func(w *world) { w.change("s3", func(svc *corev1.Service) { fixed(svc) }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := smallWorld(t, 6, 4)
			for i := range 8 {
				w.addNode(fmt.Sprint("n", i))
			}
			for i := range 9 {
				w.put(born(testService(fmt.Sprint("s", i), 80), int64(i)))
			}
			w.carryOut()
			change(w)
			w.wantPlan(first[name]...)
		})
	}
}
