package slb

import "k8s.io/apimachinery/pkg/util/sets"

// BackendKind says what a backend is.
type BackendKind string

// The kinds of an [EndpointBackend].
const (
	// KindInstance is an ECS instance: a node, at the node port of the Service.
	KindInstance BackendKind = "instance"
	// KindInterface is an address of an elastic network interface: a pod, at the target port.
	KindInterface BackendKind = "interface"
)

// EndpointBackend is what takes the traffic of one port of a Service, whatever the load balancer product.
type EndpointBackend struct {
	Kind BackendKind
	// ID is that of the ECS instance or of the network interface.
	ID string
	// IP is the address of a [KindInterface], empty otherwise.
	IP     string
	Port   int
	Weight int
	// Zone is the zone of the node, empty where it is not known.
	Zone string
}

// BackendSet is the backends of one port, and what is known of backends that are missing from it.
type BackendSet struct {
	Backends []EndpointBackend
	// Draining are backends that get weight 0 where they are registered, and are not added where they are not.
	Draining []EndpointBackend
	// Doubt keeps backends from being removed because the set may be incomplete; those whose ID is in Gone are known not to
	// belong to it and leave all the same.
	Doubt bool
	Gone  sets.Set[string]
}
