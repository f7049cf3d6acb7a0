package testkube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EndpointSlice returns a slice of a Service's port with one endpoint per item "address@node" (a ready one), "?address@node" (not
// ready) or "!address@node" (terminating, still serving). An item without "@" has no node. The slice is of IPv6 when its first
// address is.
func EndpointSlice(service string, port corev1.ServicePort, items ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-" + strings.Join(items, "-"), Namespace: Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port.Name, Protocol: &port.Protocol, Port: new(port.TargetPort.IntVal)}},
	}
	for _, item := range items {
		slice.Endpoints = append(slice.Endpoints, endpoint(item))
	}
	if len(items) > 0 && strings.Contains(slice.Endpoints[0].Addresses[0], ":") {
		slice.AddressType = discoveryv1.AddressTypeIPv6
	}
	return slice
}

func endpoint(item string) discoveryv1.Endpoint {
	var e discoveryv1.Endpoint
	switch item[0] {
	case '!':
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		item = item[1:]
	case '?':
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
		item = item[1:]
	}
	address, node, placed := strings.Cut(item, "@")
	e.Addresses = []string{address}
	if placed {
		e.NodeName = &node
	}
	return e
}

// Endpoints returns an Endpoints object of a Service's port with one address per item, in the notation of [EndpointSlice] without
// "!", which an Endpoints object cannot express. Without items it has no subset.
func Endpoints(service string, port corev1.ServicePort, items ...string) *corev1.Endpoints { //nolint:staticcheck // what old roles may read
	subset := corev1.EndpointSubset{ //nolint:staticcheck // as above
		Ports: []corev1.EndpointPort{{Name: port.Name, Protocol: port.Protocol, Port: port.TargetPort.IntVal}}, //nolint:staticcheck // as above
	}
	for _, item := range items {
		text, notReady := strings.CutPrefix(item, "?")
		ip, node, placed := strings.Cut(text, "@")
		address := corev1.EndpointAddress{IP: ip} //nolint:staticcheck // as above
		if placed {
			address.NodeName = &node
		}
		if notReady {
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
		} else {
			subset.Addresses = append(subset.Addresses, address)
		}
	}
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: Namespace, ResourceVersion: "1"}} //nolint:staticcheck // as above
	if len(items) > 0 {
		endpoints.Subsets = append(endpoints.Subsets, subset)
	}
	return endpoints
}
