package backend_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// TestFormerGroupTakesNoOtherFamily: a Service changes the family of its pods. The group that its listener is about to leave follows the
// pods of the former family; one of the other would be refused there.
func TestFormerGroupTakesNoOtherFamily(t *testing.T) {
	t.Parallel()
	port := testkube.Port(80, corev1.ProtocolTCP)
	six := testkube.EndpointSlice("web", port, "2001:db8::9@a")
	six.Name, six.AddressType = "web-6", discoveryv1.AddressTypeIPv6
	in := backend.Input{
		Pods: true, Family: discoveryv1.AddressTypeIPv6, NLB: true,
		Facts: backend.Facts{Slices: []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "10.9.0.2@a"), six},
			Interfaces: map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2", "2001:db8::9": "eni-1"}},
	}
	pod := func(ip string) backend.Backend {
		return backend.Backend{Kind: backend.KindInterface, ID: "eni-1", IP: ip, Port: 8080}
	}
	for name, test := range map[string]struct {
		there []backend.Backend
		want  []string
	}{
		"IPv4": {[]backend.Backend{pod("10.9.0.1")}, []string{"10.9.0.1", "10.9.0.2"}},
		"IPv6": {[]backend.Backend{pod("2001:db8::9")}, []string{"2001:db8::9"}},
		"both": {[]backend.Backend{pod("10.9.0.1"), pod("2001:db8::9")}, []string{"10.9.0.1", "10.9.0.2", "2001:db8::9"}},
	} {
		set := backend.Former(in, port, test.there, "web")
		var got []string
		for b := range set.All {
			got = append(got, b.IP)
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
