package backend

import (
	"cmp"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Facts are what was read for the backends of a Service, and chosen from that.
type Facts struct {
	Nodes *NodeSet
	// Slices are all EndpointSlices of the Service.
	Slices []*discoveryv1.EndpointSlice
	// Interfaces maps addresses of pods to the ids of their network interfaces. An address that is missing is not known
	// yet.
	Interfaces map[string]string
	// InterfacesUnread says that an address that is missing in Interfaces could not be asked for.
	InterfacesUnread bool
	// Waiting are addresses of pods that wait for nothing but to be backends, see [GatePrefix].
	Waiting sets.Set[string]
	// Held are addresses of pods that are not ready and may wait for nothing but to be backends: nobody has read them yet.
	Held sets.Set[string]
	// Blocks are the address blocks of the VPC, none when they are not known. An address of a pod that is in none of them
	// has no network interface and never will.
	Blocks []netip.Prefix
	// Choice says which backends the load balancer has room for.
	Choice Choice
}

// Input is everything that the backends of a Service depend on.
type Input struct {
	Facts

	Params annotation.Params
	// Pods makes the addresses of pods the backends, at the target port; otherwise they are nodes, at the node port.
	Pods bool
	// Local is externalTrafficPolicy Local: only nodes that run ready endpoints.
	Local bool
	// Family is the family of the endpoint addresses that count; with BothFamilies those of IPv4 and IPv6 do.
	Family       discoveryv1.AddressType
	BothFamilies bool
	// ControlPlane says whether control-plane nodes are backends.
	ControlPlane ControlPlanePolicy
	// ByAddress says that a pod is a backend by its address alone, so that it needs no network interface: in Interfaces, each address stands
	// for itself.
	ByAddress bool
	// NLB says that the load balancer is an NLB, and no CLB: what to do about quotas differs.
	NLB bool
}

// nodeSelector is what the annotation backend-label asks for, nil for every node.
func (in Input) nodeSelector() labels.Selector {
	text := in.Params.Get(annotation.BackendLabel)
	if text == "" {
		return nil
	}
	if wanted, err := labels.ConvertSelectorToLabelsMap(text); err == nil {
		return labels.SelectorFromSet(wanted)
	}
	return labels.Nothing()
}

// candidateNodes are the nodes that may be backends.
func (in Input) candidateNodes() *candidates {
	return in.Nodes.candidatesOf(candidatesKey{policy: in.ControlPlane, cordonedLeave: in.cordonedLeave()}, in.nodeSelector())
}

// cordonedLeave reports whether a cordoned node takes no new connections.
func (in Input) cordonedLeave() bool {
	return in.Params.Get(annotation.RemoveUnscheduledBackend) == "on"
}

// Counts reports whether the addresses of a slice are of a family that counts. Those of type FQDN never are.
func (in Input) Counts(slice *discoveryv1.EndpointSlice) bool {
	return slice.AddressType == in.Family ||
		in.BothFamilies && (slice.AddressType == discoveryv1.AddressTypeIPv4 || slice.AddressType == discoveryv1.AddressTypeIPv6)
}

// Resolver is the only authority on the backends of a Service.
type Resolver struct {
	in Input
	// selector is what the annotation backend-label asks for, nil for every node.
	selector labels.Selector
	// nodes are those that may be backends.
	nodes *candidates
	// beyond is how many addresses of pods are too many; within are the others, see [MaxPods].
	beyond int
	within sets.Set[string]
	// short is what the ports lack that were resolved, see [Resolver.Shortages].
	short shortage
}

// NewResolver returns a resolver.
func NewResolver(in Input) *Resolver {
	r := &Resolver{in: in, selector: in.nodeSelector()}
	r.boundAddresses()
	if in.Pods {
		return r
	}
	r.nodes = in.candidateNodes()
	return r
}

// Backends returns the backends of one port of the Service. group is how the Service marks them, see [Entry].
func (r *Resolver) Backends(port corev1.ServicePort, group string) (Set, []problem.Problem) {
	of := r.clusterBackends
	switch {
	case r.in.Pods:
		of = r.podBackends
	case r.in.Local:
		of = r.localBackends
	}
	set, problems := of(port)
	if set.portless && r.in.Choice.Room.registeredCount(group) > 0 { // the endpoints of a new port follow in a moment
		problems = append(problems,
			problem.Newf(problem.ReasonSkipSyncBackends, "no endpoint has the port %s (target port %s); backends on which endpoints are stay",
				port.Name, port.TargetPort.String()))
	}
	r.holdCordoned(&set)
	r.keepOne(&set, group)
	r.dropDraining(&set, group)
	r.fitRoom(&set, group)
	return set, problems
}

// endpointState is what an endpoint can do.
type endpointState int

// The values of [endpointState], the most able last.
const (
	endpointGone endpointState = iota
	// endpointTerminating still serves the connections it has.
	endpointTerminating
	endpointReady
)

// stateOf reads the conditions; a missing condition means ready (documented in the EndpointSlice API).
func stateOf(endpoint discoveryv1.Endpoint) endpointState {
	conditions := endpoint.Conditions
	terminating := conditions.Terminating != nil && *conditions.Terminating
	serving := conditions.Serving == nil || *conditions.Serving
	switch {
	case terminating && serving:
		return endpointTerminating
	case !terminating && (conditions.Ready == nil || *conditions.Ready):
		return endpointReady
	}
	return endpointGone
}

// endpointKey identifies an endpoint of a port. Pods with the host's network share its address, each with a number of its own.
type endpointKey struct {
	address string
	number  int32
}

// moreAble orders two endpoints with one address: the slices come in any order, and a backend must not go out and come back with that.
func moreAble(a, b *discoveryv1.Endpoint) int {
	return cmp.Or(
		cmp.Compare(stateOf(*a), stateOf(*b)), cmp.Compare(ptr.Deref(a.NodeName, ""), ptr.Deref(b.NodeName, "")),
		cmp.Compare(ptr.Deref(a.Zone, ""), ptr.Deref(b.Zone, "")),
	)
}

// eachEndpoint calls f for every endpoint that has the Service's port, with the port's number there. All slices count together: one
// endpoint may move from one to another at any time, and then stand in both; so may one that another controller has a slice of its own for.
// The most able one counts. It returns false when there are endpoints, but none with the port: then the slices do not follow the Service
// yet.
func (r *Resolver) eachEndpoint(port corev1.ServicePort, f func(endpoint discoveryv1.Endpoint, number int32)) (ok bool) {
	best := map[endpointKey]*discoveryv1.Endpoint{}
	endpoints := false
	for _, slice := range r.in.Slices {
		if !r.in.Counts(slice) || len(slice.Endpoints) == 0 {
			continue
		}
		endpoints = true
		number, found := portOf(slice, port)
		if !found {
			continue
		}
		ok = true
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if len(endpoint.Addresses) == 0 {
				continue
			}
			key := endpointKey{endpoint.Addresses[0], number}
			if other := best[key]; other == nil || moreAble(endpoint, other) > 0 {
				best[key] = endpoint
			}
		}
	}
	for key, endpoint := range best {
		f(*endpoint, key.number)
	}
	return ok || !endpoints
}

// portOf finds the number of the Service's port in a slice: by its name, because the number may differ from slice to slice, or else
// by a numeric target port. Slices follow a renamed port a moment later, and those that people write may have another name.
func portOf(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) (int32, bool) {
	byNumber := false
	for _, candidate := range slice.Ports {
		protocol := corev1.ProtocolTCP
		if candidate.Protocol != nil {
			protocol = *candidate.Protocol
		}
		if protocol != port.Protocol || candidate.Port == nil {
			continue
		}
		name := ""
		if candidate.Name != nil {
			name = *candidate.Name
		}
		if name == port.Name {
			return *candidate.Port, true
		}
		byNumber = byNumber || port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal == *candidate.Port
	}
	if byNumber {
		return port.TargetPort.IntVal, true
	}
	return 0, false
}
