package backend

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FromEndpoints projects an Endpoints object to EndpointSlices, for clusters whose role may not list those. There is one slice
// per subset and address family, and at least one: an object without addresses is a Service without endpoints, which is
// not the same as one about which nothing is known. What an Endpoints object cannot tell (terminating endpoints) is
// missing.
func FromEndpoints(endpoints *corev1.Endpoints) []*discoveryv1.EndpointSlice { //nolint:staticcheck // what old roles may read
	projected := []*discoveryv1.EndpointSlice{newSlice(endpoints.ObjectMeta, discoveryv1.AddressTypeIPv4, nil)}
	for i := range endpoints.Subsets {
		subset := &endpoints.Subsets[i]
		byFamily := map[discoveryv1.AddressType][]discoveryv1.Endpoint{}
		for _, address := range subset.Addresses {
			addEndpoint(byFamily, address, true)
		}
		for _, address := range subset.NotReadyAddresses {
			addEndpoint(byFamily, address, false)
		}
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if len(byFamily[family]) == 0 {
				continue
			}
			slice := newSlice(endpoints.ObjectMeta, family, byFamily[family])
			for _, port := range subset.Ports {
				slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
					Name: new(port.Name), Protocol: new(port.Protocol), Port: new(port.Port), AppProtocol: port.AppProtocol,
				})
			}
			projected = append(projected, slice)
		}
	}
	return projected
}

// NoEndpoints says that a Service has no endpoints.
func NoEndpoints(svc *corev1.Service) []*discoveryv1.EndpointSlice {
	return []*discoveryv1.EndpointSlice{newSlice(svc.ObjectMeta, discoveryv1.AddressTypeIPv4, nil)}
}

func newSlice(meta metav1.ObjectMeta, family discoveryv1.AddressType, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.Namespace, Name: meta.Name, Labels: map[string]string{discoveryv1.LabelServiceName: meta.Name},
		},
		AddressType: family, Endpoints: endpoints,
	}
}

func addEndpoint(byFamily map[discoveryv1.AddressType][]discoveryv1.Endpoint, address corev1.EndpointAddress, ready bool) { //nolint:staticcheck // as above
	family := discoveryv1.AddressTypeIPv4
	if ip, err := netip.ParseAddr(address.IP); err == nil && ip.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	byFamily[family] = append(byFamily[family], discoveryv1.Endpoint{
		Addresses: []string{address.IP}, NodeName: address.NodeName, TargetRef: address.TargetRef,
		Conditions: discoveryv1.EndpointConditions{Ready: new(ready), Serving: new(ready), Terminating: new(false)},
	})
}
