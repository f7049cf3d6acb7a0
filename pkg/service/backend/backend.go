package backend

import "k8s.io/apimachinery/pkg/util/sets"

// Kind says what a backend is.
type Kind string

// The kinds of an [Backend].
const (
	// KindInstance is an ECS instance: a node, at the node port of the Service.
	KindInstance Kind = "instance"
	// KindInterface is an address of an elastic network interface: a pod, at the target port.
	KindInterface Kind = "interface"
)

// Backend is what takes the traffic of one port of a Service, whatever the load balancer product.
type Backend struct {
	Kind Kind
	// ID is that of the ECS instance or of the network interface.
	ID string
	// IP is the address of a [KindInterface], empty otherwise.
	IP     string
	Port   int
	Weight int
	// Zone is the zone of the node, empty where it is not known.
	Zone string
}

// Set is the backends of one port, and what is known of backends that are missing from it.
type Set struct {
	Backends []Backend
	// Draining are backends that get weight 0 where they are registered, and are not added where they are not.
	Draining []Backend
	// Doubt keeps backends from being removed because the set may be incomplete; those whose ID is in Gone are known not to
	// belong to it and leave all the same.
	Doubt bool
	Gone  sets.Set[string]
}
