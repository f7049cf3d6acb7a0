package service

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestDemandOfSharedLoadBalancers: a group whose Services may overflow counts for as many load balancers as its listeners need, in any order of its Services.
func TestDemandOfSharedLoadBalancers(t *testing.T) {
	t.Parallel()
	grouped := func(overflow string, ports ...int32) *corev1.Service {
		return testkit.Service("web", testkit.TCP(ports...), testkit.Annotation(annotation.Group.Key(), "edge"), testkit.Annotation(annotation.GroupOverflow.Key(), overflow))
	}
	stays, overflows := grouped("false", 1, 2, 3, 4), grouped("true", 5, 6)
	for _, test := range []struct {
		name      string
		listeners int
		services  []*corev1.Service
		want      int
	}{
		{"no overflow", 4, []*corev1.Service{stays, stays}, 1},
		{"one is enough", 4, []*corev1.Service{overflows, overflows}, 1},
		{"two are needed", 4, []*corev1.Service{overflows, overflows, overflows}, 2},
		{"three are needed", 2, []*corev1.Service{stays, overflows, overflows, overflows}, 3},
		{"any number of listeners", 0, []*corev1.Service{overflows, overflows, overflows}, 1},
	} {
		for first := range test.services {
			d, got := sharedDemand{listeners: test.listeners, ports: map[string]int{}}, 0
			for _, svc := range slices.Concat(test.services[first:], test.services[:first]) {
				got += d.add(sharedBy(svc), svc)
			}
			if got != test.want {
				t.Errorf("%s: %d load balancers, want %d", test.name, got, test.want)
			}
		}
	}
}
