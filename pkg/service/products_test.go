package service

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestTwoProducts: two products stand side by side, and the class alone says which one serves a Service. A Service whose class goes with its
// type is torn down by the product that has it.
func TestTwoProducts(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	inFrame(t, []Engine{clb, nlb}, func(t *testing.T, f *frame) {
		f.put(testService("plain"))
		f.put(testService("first", testkit.Class(clb.class())))
		f.put(testService("second", testkit.Class(nlb.class())))
		f.put(testService("foreign", testkit.Class("example.com/other")))
		for name, want := range map[string]string{"plain": "clb", "first": "clb", "second": "nlb", "foreign": ""} {
			fromCLB, _ := clb.of(name)
			fromNLB, _ := nlb.of(name)
			if got, _, _ := strings.Cut(fromCLB+fromNLB, "-"); got != want {
				t.Errorf("Service %s is on %q and %q, want %q", name, fromCLB, fromNLB, want)
			}
		}
		clb.since()
		nlb.since()
		f.change("second", setPort(81))
		if _, ports := nlb.of("second"); !slices.Equal(ports, []int32{81}) {
			t.Errorf("ports %v after a change, want 81", ports)
		}
		f.change("second", func(svc *corev1.Service) {
			svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil // the API server takes the class away
		})
		if id, _ := nlb.of("second"); id != "" || HasFinalizer(f.get("second")) {
			t.Errorf("load balancer %q, finalizers %v after the tear-down", id, f.get("second").Finalizers)
		}
		if calls := clb.since(); len(calls) != 0 {
			t.Errorf("calls %v of the other product, want none", calls)
		}
		f.change("second", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
		if id, _ := clb.of("second"); id == "" {
			t.Error("the Service came back without a class, and has no load balancer of the first product")
		}
	})
}
