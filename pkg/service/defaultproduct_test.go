package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestDefaultProduct: the cloud-config may have Services without a class get an NLB. One that has a load balancer keeps it, and a class
// counts for more.
func TestDefaultProduct(t *testing.T) {
	t.Parallel()
	clb := driver.Product{Name: "CLB", Class: "clb", Classless: true, Finalizer: driver.Finalizers + "resources"}
	nlb := driver.Product{Name: "NLB", Class: "nlb", Finalizer: driver.Finalizers + "nlb"}
	held := func(by driver.Product) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Finalizers = []string{"other", by.Finalizer} }
	}
	for _, test := range []struct {
		name       string
		defaultNLB bool
		change     func(*corev1.Service)
		want       string
	}{
		{"official", false, func(*corev1.Service) {}, "CLB"},
		{"no class", true, func(*corev1.Service) {}, "NLB"},
		{"class of CLBs", true, testkube.Class("clb"), "CLB"},
		{"class of NLBs", false, testkube.Class("nlb"), "NLB"},
		{"has a CLB", true, held(clb), "CLB"},
		{"has an NLB", true, held(nlb), "NLB"},
		{"of another controller", true, func(svc *corev1.Service) { svc.Annotations = map[string]string{driver.AnnotationClass: "x"} }, ""},
		{"class of nobody here", true, testkube.Class("x"), ""},
	} {
		svc := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		test.change(svc)
		got := ""
		for _, product := range []driver.Product{clb, nlb} {
			if product.AskedBy(config.Config{DefaultNLB: test.defaultNLB}, svc) {
				got += product.Name
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
