package backend

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// Kind says what a backend is.
type Kind string

// The kinds of a [Backend].
const (
	// KindInstance is an ECS instance: a node, at the node port of the Service.
	KindInstance Kind = "instance"
	// KindInterface is an address of an elastic network interface: a pod, at the target port.
	KindInterface Kind = "interface"
)

// OnPods reports whether addresses of pods are the backends of a Service: as its annotation says, else as the cloud-config does. An annotation
// that is not accepted leaves them what they are: known says that this is known, has whether pods are backends now.
func OnPods(params annotation.Params, byDefault, known bool, has func() bool) bool {
	switch {
	case params.BackendType != "":
		return params.BackendType == alicloud.BackendENI
	case known && params.Refused(annotation.BackendType):
		return has()
	}
	return byDefault
}

// WeightsUndecided reports whether an annotation that was not accepted decides on the weights of backends: those that are there keep theirs, and others join like them.
func WeightsUndecided(params annotation.Params) bool {
	return slices.ContainsFunc([]annotation.Suffix{annotation.DefaultWeight, annotation.IgnoreWeightUpdate, annotation.RemoveUnscheduledBackend}, params.Refused)
}

// Backend is what takes the traffic of one port of a Service, whatever the load balancer product.
type Backend struct {
	Kind Kind
	// ID is that of the ECS instance or of the network interface.
	ID string
	// IP is the address of a [KindInterface], empty otherwise.
	IP string
	// NodeIP is the InternalIP of the node that a [KindInstance] is, empty otherwise.
	NodeIP string
	Port   int
	Weight int
	// Zone is the zone of the node, empty where it is not known.
	Zone string
}

// Set is the backends of one port, and what is known of backends that are missing from it.
type Set struct {
	// Alike are nodes, and Backends the other backends; see [Set.All].
	Alike    Alike
	Backends []Backend
	// Draining are backends that get weight 0 where they are registered, and are not added where they are not.
	Draining []Backend
	// Doubt keeps backends from being removed because the set may be incomplete; those whose ID is in Gone are known not to
	// belong to it and leave all the same.
	Doubt bool
	Gone  sets.Set[string]
	// Held are addresses of backends that stay as they are where they are registered, and are not added where they are not.
	Held sets.Set[string]
	// Counted says that the weights are numbers of endpoints. A small difference in a backend's share of the traffic is no reason to
	// write its weight.
	Counted bool
	// Balances says that of the backends that the Service has one leaves that works, for the sake of another one, and no others leave.
	Balances bool
}

// Alike are nodes that take traffic at the same port with the same weight. Most Services have all nodes of the cluster: they share one
// list, and a pass makes no other of it.
type Alike struct {
	nodes  []*Node
	port   int32
	weight int
}

func (a Alike) each(yield func(Backend) bool) {
	for _, node := range a.nodes {
		if !yield(nodeBackend(node, a.port, a.weight)) {
			return
		}
	}
}

// Len is the number of backends.
func (s *Set) Len() int { return len(s.Alike.nodes) + len(s.Backends) }

// All goes over the backends.
func (s *Set) All(yield func(Backend) bool) {
	goesOn := true
	s.Alike.each(func(b Backend) bool {
		goesOn = yield(b)
		return goesOn
	})
	for i := 0; goesOn && i < len(s.Backends); i++ {
		goesOn = yield(s.Backends[i])
	}
}

// drain puts what leaves into the set, the most able first. While nothing else takes traffic, the first of them that are any keep
// their weight: a connection that is about to end is better than one that is refused.
func (s *Set) drain(leaving ...[]Backend) {
	for _, backends := range leaving {
		if s.Len() == 0 {
			s.Backends = append(s.Backends, backends...)
			continue
		}
		for _, b := range backends {
			b.Weight = 0
			s.Draining = append(s.Draining, b)
		}
	}
}
