package slb

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestSwappedPortsOfAGroup: two Services of a group swap their ports while the cloud deletes no listener. They do not wake each other
// without end.
func TestSwappedPortsOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	opts, waiting := w.options(), map[string]bool{}
	opts.Engines[0].(driver.Waker).Wakes(func(svc types.NamespacedName) { waiting[svc.Name] = true })
	w.Reconciler = service.NewReconciler(opts)
	w.putAll(grouped("shop", "edge", 81), grouped("web", "edge", 80))
	for range 3 {
		w.mustPass("shop")
		w.mustPass("web")
	}
	clear(waiting)
	w.fault(map[string]any{"action": "DeleteLoadBalancerListener", "code": "Forbidden.RAM", "status": 403, "times": 1000000})
	w.change("shop", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 80 })
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 81 })
	_, _ = w.pass("shop"), w.pass("web")
	passes := 0
	for begin := time.Now(); len(waiting) > 0 && passes < 200 && time.Since(begin) < 9*time.Second; passes++ {
		for name := range waiting {
			delete(waiting, name)
			_ = w.pass(name)
			break
		}
	}
	if passes > 20 {
		t.Errorf("%d passes follow each other without a pause", passes)
	}
}
