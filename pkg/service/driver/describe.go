package driver

import (
	corev1 "k8s.io/api/core/v1"
)

// Described is a [Plan] that says what it wants and what there is, for people.
type Described interface {
	Plan
	// Describe returns the listeners of the Service. owned says that the load balancer is the Service's own by its owner tag.
	Describe(svc *corev1.Service) (listeners []Listening, owned bool)
	// Wanted are the IDs and addresses, as those of [Listening], of all backends that it may give connections, whether listeners are known
	// that lead to them or not.
	Wanted() []string
}

// Listening is one listener as a plan wants it, and what there is.
type Listening struct {
	// Listener is its protocol and port, as [Step.Target] names it.
	Listener string
	// Status is that of the listener in the cloud, empty where there is none.
	Status string
	// Redirects says that it has no backends of its own.
	Redirects bool
	// Wanted are IDs of instances, or addresses of pods or nodes, that are to take connections, Draining those that are to take no new ones,
	// and Registered those that the cloud has.
	Wanted, Draining, Registered []string
	// Doubt says that what is registered stays, because what is wanted may be incomplete.
	Doubt bool
}
