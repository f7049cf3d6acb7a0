package backend

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

func TestEndpointsAreProjectedToSlices(t *testing.T) {
	t.Parallel()
	port := testkube.Port(80, corev1.ProtocolTCP)
	for _, test := range []struct {
		name  string
		items []string
		want  []string
	}{
		{"none", nil, []string{"IPv4"}},
		{"ready and not", []string{"10.9.0.1@a", "?10.9.0.2@b"}, []string{"IPv4", "IPv4 tcp-80:8080 10.9.0.1@a ready 10.9.0.2@b gone"}},
		{"both families", []string{"10.9.0.1@a", "fd00::1@a"},
			[]string{"IPv4", "IPv4 tcp-80:8080 10.9.0.1@a ready", "IPv6 tcp-80:8080 fd00::1@a ready"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, slice := range FromEndpoints(testkube.Endpoints("web", port, test.items...)) {
				if slice.Labels[discoveryv1.LabelServiceName] != "web" || slice.Namespace != testkube.Namespace {
					t.Errorf("slice of %s/%s", slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
				}
				got = append(got, sliceLine(slice, port))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
		})
	}
}

func sliceLine(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) string {
	line := string(slice.AddressType)
	if number, ok := portOf(slice, port); ok {
		line += fmt.Sprintf(" %s:%d", port.Name, number)
	}
	for _, endpoint := range slice.Endpoints {
		state := map[endpointState]string{endpointGone: "gone", endpointReady: "ready", endpointTerminating: "terminating"}[stateOf(endpoint)]
		line += fmt.Sprintf(" %s@%s %s", endpoint.Addresses[0], *endpoint.NodeName, state)
	}
	return line
}
