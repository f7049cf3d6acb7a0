package lightnode

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestForwardingOf(t *testing.T) {
	t.Parallel()
	const ready, dead, draining = "ready", "dead", "draining"
	endpoint := func(addr, node, state string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{addr}, NodeName: ptr.To(node),
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(state == ready), Serving: ptr.To(state != dead), Terminating: ptr.To(state == draining),
			},
		}
	}
	slice := func(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080)}},
		}
	}
	service := func(policy corev1.ServiceExternalTrafficPolicy) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: corev1.ServiceSpec{
				ExternalTrafficPolicy: policy, HealthCheckNodePort: 32000,
				Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080}},
			},
		}
	}
	mixed := []*discoveryv1.EndpointSlice{
		slice(endpoint("10.244.1.2", "node-b", ready), endpoint("10.244.0.3", "node-a", dead)),
		slice(endpoint("10.244.0.2", "node-a", ready), endpoint("10.244.0.4", "node-a", draining), endpoint("10.244.1.2", "node-b", ready)),
	}
	tests := []struct {
		name   string
		policy corev1.ServiceExternalTrafficPolicy
		port   int32
		slices []*discoveryv1.EndpointSlice
		want   forwarding
	}{
		{
			"ready endpoints of all slices once, sorted", corev1.ServiceExternalTrafficPolicyCluster, 30080, mixed,
			forwarding{name: "default/web:30080", endpoints: []netip.AddrPort{
				netip.MustParseAddrPort("10.244.0.2:8080"), netip.MustParseAddrPort("10.244.1.2:8080"),
			}},
		},
		{
			"local only", corev1.ServiceExternalTrafficPolicyLocal, 30080, mixed,
			forwarding{name: "default/web:30080", endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.244.0.2:8080")}},
		},
		{
			"draining ones when nothing is ready", corev1.ServiceExternalTrafficPolicyCluster, 30080,
			[]*discoveryv1.EndpointSlice{slice(endpoint("10.244.0.3", "node-a", dead), endpoint("10.244.0.4", "node-a", draining))},
			forwarding{name: "default/web:30080", endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.244.0.4:8080")}},
		},
		{
			"health check counts local ready endpoints", corev1.ServiceExternalTrafficPolicyLocal, 32000, mixed,
			forwarding{name: "default/web:32000", healthCheck: &serviceHealth{Service: serviceName{"default", "web"}, LocalEndpoints: 1}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := forwardingOf(service(tt.policy), tt.port, "node-a", tt.slices)
			options := cmp.Options{cmp.AllowUnexported(forwarding{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })}
			if diff := cmp.Diff(tt.want, got, options); diff != "" {
				t.Errorf("forwarding differs (-want +got):\n%s", diff)
			}
		})
	}
}
