package backend_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestWhatServesNobody: one event says why nodes or endpoints are no backends, and none is about nodes that would not be backends anyway.
func TestWhatServesNobody(t *testing.T) {
	t.Parallel()
	port := testkube.Port(80, corev1.ProtocolTCP)
	slice := func(family discoveryv1.AddressType, items ...string) []*discoveryv1.EndpointSlice {
		s := testkube.EndpointSlice("web", port, items...)
		s.AddressType = family
		return []*discoveryv1.EndpointSlice{s}
	}
	const nodes, family = problem.ReasonSkipSyncBackends, problem.ReasonFeatureNotSupported
	for _, test := range []struct {
		name     string
		in       backend.Input
		families []corev1.IPFamily
		want     []string
	}{
		{"policy Cluster: any node", backend.Input{}, nil, []string{nodes}},
		{"pods", backend.Input{Pods: true}, nil, nil},
		{"policy Local: a node without pods", backend.Input{Facts: backend.Facts{Slices: slice(discoveryv1.AddressTypeIPv4, "10.9.0.1@a")},
			Local: true}, nil, nil},
		{"policy Local: its node", backend.Input{Facts: backend.Facts{Slices: slice(discoveryv1.AddressTypeIPv4, "10.9.0.1@new")},
			Local: true}, nil, []string{nodes}},
		{"family of the Service", backend.Input{Pods: true}, []corev1.IPFamily{corev1.IPv6Protocol}, []string{family}},
		{"one of its families", backend.Input{Pods: true}, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, nil},
		{"family of the endpoints", backend.Input{Facts: backend.Facts{Slices: slice(discoveryv1.AddressTypeIPv6, "2001:db8::1@a")},
			Pods: true}, nil,
			[]string{family}},
		{"names as endpoints", backend.Input{Facts: backend.Facts{Slices: slice(discoveryv1.AddressTypeFQDN, "web.example.com@a")},
			Pods: true}, nil, []string{family}},
		{"no endpoints", backend.Input{Facts: backend.Facts{Slices: slice(discoveryv1.AddressTypeIPv6)}, Pods: true}, nil, nil},
		{"both families count", backend.Input{Facts: backend.Facts{Slices: slice(discoveryv1.AddressTypeIPv6, "2001:db8::1@a")}, Pods: true,
			BothFamilies: true}, nil,
			nil},
	} {
		test.in.Family = discoveryv1.AddressTypeIPv4
		test.in.Nodes = backend.Nodes([]*corev1.Node{testkube.Node("a"), testkube.Node("new", testkube.ProviderID(""))}, testkube.InstanceID, now)
		var got []string
		for _, found := range test.in.Unserved(test.families) {
			got = append(got, found.Reason)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
