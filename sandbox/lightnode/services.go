package lightnode

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// serviceReader answers what a node port stands for.
type serviceReader interface {
	// nodePort is what a TCP port of the machine behind nodeName forwards to; the error is ECONNREFUSED when it is no node port.
	nodePort(port int32, nodeName string) (forwarding, error)
}

// forwarding is where connections to a node port go: to one of the endpoints, or to a health check.
type forwarding struct {
	name        string // namespace/name:port, for errors and the round robin
	endpoints   []netip.AddrPort
	healthCheck *serviceHealth
}

// Names of the indexes that serviceCache reads.
const (
	indexByNodePort = "node-port"
	indexByService  = "service"
)

func nodePortIndex(obj any) ([]string, error) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil, nil
	}
	var keys []string
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 && (port.Protocol == corev1.ProtocolTCP || port.Protocol == "") {
			keys = append(keys, fmt.Sprint(port.NodePort))
		}
	}
	if port := service.Spec.HealthCheckNodePort; port != 0 {
		keys = append(keys, fmt.Sprint(port))
	}
	return keys, nil
}

func sliceServiceIndex(obj any) ([]string, error) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelServiceName] == "" {
		return nil, nil
	}
	return []string{slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]}, nil
}

// serviceCache is the light kube-proxy's view: informer caches with the two indexes above.
type serviceCache struct {
	services, slices cache.Indexer
}

func (c *serviceCache) nodePort(port int32, nodeName string) (forwarding, error) {
	found, err := c.services.ByIndex(indexByNodePort, fmt.Sprint(port))
	if err != nil {
		return forwarding{}, fmt.Errorf("look up node port %d: %w", port, err)
	}
	if len(found) == 0 {
		return forwarding{}, syscall.ECONNREFUSED
	}
	service := found[0].(*corev1.Service) //nolint:forcetypeassert // the informer's type
	objects, err := c.slices.ByIndex(indexByService, service.Namespace+"/"+service.Name)
	if err != nil {
		return forwarding{}, fmt.Errorf("look up the endpoints of %s/%s: %w", service.Namespace, service.Name, err)
	}
	endpointSlices := make([]*discoveryv1.EndpointSlice, 0, len(objects))
	for _, object := range objects {
		endpointSlices = append(endpointSlices, object.(*discoveryv1.EndpointSlice)) //nolint:forcetypeassert // the informer's type
	}
	return forwardingOf(service, port, nodeName, endpointSlices), nil
}

// forwardingOf decides, as kube-proxy does, where connections to a node port of service go on the node nodeName.
func forwardingOf(service *corev1.Service, port int32, nodeName string, endpointSlices []*discoveryv1.EndpointSlice) forwarding {
	local := service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	result := forwarding{name: fmt.Sprintf("%s/%s:%d", service.Namespace, service.Name, port)}
	if port == service.Spec.HealthCheckNodePort {
		result.healthCheck = &serviceHealth{
			Service:        serviceName{Namespace: service.Namespace, Name: service.Name},
			LocalEndpoints: localEndpoints(endpointSlices, nodeName),
		}
		return result
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == port })
	if i < 0 {
		return result
	}
	onNode := ""
	if local {
		onNode = nodeName
	}
	result.endpoints = endpointsOf(endpointSlices, service.Spec.Ports[i].Name, onNode)
	return result
}

// endpointsOf are the ready endpoints of a named port, or, when there is none, the terminating ones that still serve. A non-empty
// nodeName limits them to that node. They are sorted, so that a round robin over them is even.
func endpointsOf(endpointSlices []*discoveryv1.EndpointSlice, portName, nodeName string) []netip.AddrPort {
	var ready, terminating []netip.AddrPort
	for _, slice := range endpointSlices {
		port := portNumber(slice, portName)
		if port == 0 || slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if nodeName != "" && ptr.Deref(endpoint.NodeName, "") != nodeName {
				continue
			}
			addr, err := netip.ParseAddr(endpoint.Addresses[0])
			if err != nil {
				continue // the API server validates addresses
			}
			switch conditions := endpoint.Conditions; {
			case ptr.Deref(conditions.Ready, true):
				ready = append(ready, netip.AddrPortFrom(addr, port))
			case ptr.Deref(conditions.Serving, false) && ptr.Deref(conditions.Terminating, false):
				terminating = append(terminating, netip.AddrPortFrom(addr, port))
			}
		}
	}
	if len(ready) == 0 {
		ready = terminating
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready)
}

func portNumber(slice *discoveryv1.EndpointSlice, name string) uint16 {
	for _, port := range slice.Ports {
		if ptr.Deref(port.Name, "") == name && port.Port != nil {
			return uint16(*port.Port)
		}
	}
	return 0
}

// localEndpoints counts the ready endpoints on a node.
func localEndpoints(endpointSlices []*discoveryv1.EndpointSlice, nodeName string) int {
	count := 0
	for _, slice := range endpointSlices {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.NodeName, "") == nodeName && ptr.Deref(endpoint.Conditions.Ready, true) {
				count++
			}
		}
	}
	return count
}
