package backend

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
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

// OnPods reports whether addresses of pods are the backends of a Service: as its annotation says, else as the cloud-config does. An
// annotation that is not accepted leaves them what they are: now returns whether they are pods, and false where nothing says so. So do
// ports none of which has a node port.
func OnPods(params annotation.Params, byDefault bool, ports []corev1.ServicePort, now func() (pods, known bool)) bool {
	wants := WantsPods(params, byDefault)
	if params.Refused(annotation.BackendType) || !wants && withoutNodePorts(ports) {
		if pods, known := now(); known {
			return pods
		}
	}
	return wants
}

// WantsPods reports whether addresses of pods are to be the backends, see [OnPods].
func WantsPods(params annotation.Params, byDefault bool) bool {
	if params.BackendType != "" {
		return params.BackendType == alicloud.BackendENI
	}
	return byDefault
}

// WeightsUndecided reports whether an annotation that was not accepted decides on the weights of backends: those that are there keep
// theirs, and others join like them.
func WeightsUndecided(params annotation.Params) bool {
	return slices.ContainsFunc([]annotation.Suffix{annotation.DefaultWeight, annotation.IgnoreWeightUpdate,
		annotation.RemoveUnscheduledBackend}, params.Refused)
}

// MayListen reports whether a listener, of UDP or not, can be that of a port, and not that of the other port of the same number.
func MayListen(svc *corev1.Service, port corev1.ServicePort, udp bool) bool {
	return udp == (port.Protocol == corev1.ProtocolUDP) || !DeclaresPort(svc, port.Port, udp)
}

// DeclaresPort reports whether the Service has the port with UDP, or with TCP.
func DeclaresPort(svc *corev1.Service, number int32, udp bool) bool {
	return slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == number && (p.Protocol == corev1.ProtocolUDP) == udp
	})
}

func withoutNodePorts(ports []corev1.ServicePort) bool {
	return !slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.NodePort != 0 })
}

// StayOnPods reports that pods are the backends although nodes are to be.
func StayOnPods(params annotation.Params, byDefault, pods bool) []problem.Problem {
	if !pods || WantsPods(params, byDefault) || params.Refused(annotation.BackendType) {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonSkipSyncBackends,
		"no port has a node port (allocateLoadBalancerNodePorts is false), so nodes cannot be backends; pods stay the backends; add node ports, or %s: eni", annotation.BackendType)}
}

// NamedForPods tells by the names of groups whether pods are the backends of the ports of a Service, also while there are none: those of
// pods are named for the target port, those of nodes for the node port. exists reports whether there is a group that is named for a text.
func NamedForPods(ports []corev1.ServicePort, exists func(text string) bool) (pods, known bool) {
	nodes := false
	for _, port := range ports {
		ofPods, ofNodes := TargetPort(port), strconv.Itoa(int(port.NodePort))
		if ofPods != ofNodes {
			pods, nodes = pods || exists(ofPods), nodes || exists(ofNodes)
		}
	}
	return pods, pods != nodes
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
	// Held are addresses of pods and nodes, and IDs of instances, that stay as they are where they are registered, and are not added where
	// they are not: a doubt that is only about them.
	Held sets.Set[string]
	// portless says that there are endpoints, and none with the port.
	portless bool
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

func (a Alike) eachBackend(yield func(Backend) bool) {
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
	s.Alike.eachBackend(func(b Backend) bool {
		goesOn = yield(b)
		return goesOn
	})
	for i := 0; goesOn && i < len(s.Backends); i++ {
		goesOn = yield(s.Backends[i])
	}
}

// holdRegistered keeps backends as they are where they are registered.
func (s *Set) holdRegistered(backends sets.Set[string]) {
	if backends.Len() > 0 {
		s.Held = s.Held.Union(backends)
	}
}

// drainLeaving puts what leaves into the set, the most able first. While nothing else takes traffic, the first of them that are any keep
// their weight: a connection that is about to end is better than one that is refused.
func (s *Set) drainLeaving(leaving ...[]Backend) {
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
