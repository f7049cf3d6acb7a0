package backend

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// podBackends returns the addresses of endpoints, at the target port. While no endpoint is ready, those that terminate keep their weight.
func (r *Resolver) podBackends(port corev1.ServicePort) (Set, []problem.Problem) {
	set := Set{Backends: []Backend{}, Doubt: len(r.in.Slices) == 0}
	weight := r.in.Params.Int(annotation.DefaultWeight, alicloud.MaxWeight)
	terminating, problems := r.addPods(&set, port, weight, func(discoveryv1.Endpoint) bool { return true })
	set.drainLeaving(terminating)
	return set, problems
}

// addVirtual adds the pods on virtual nodes, which have no node port, to a set whose other backends are nodes. It returns those that
// terminate.
func (r *Resolver) addVirtual(set *Set, port corev1.ServicePort, weight int) ([]Backend, []problem.Problem) {
	if r.in.Nodes == nil || r.in.Nodes.virtual.Len() == 0 {
		return nil, nil
	}
	virtual := r.in.Nodes.virtual
	if len(r.in.Slices) == 0 && !set.Doubt {
		set.Doubt, set.Gone = true, r.in.Nodes.instanceIDs()
	}
	return r.addPods(set, port, weight, func(endpoint discoveryv1.Endpoint) bool {
		return endpoint.NodeName != nil && virtual.Has(*endpoint.NodeName)
	})
}

// addPods adds the endpoints that are wanted and ready, and returns those that terminate. Where one has no network interface, or nothing
// says at which port the pods answer, a backend with that address stays: it may be the very one. What stands in no EndpointSlice is gone
// all the same.
func (r *Resolver) addPods(
	set *Set, port corev1.ServicePort, weight int, wanted func(discoveryv1.Endpoint) bool,
) ([]Backend, []problem.Problem) {
	var ready, terminating []Backend
	var outside, missing []string
	withPort := r.eachEndpoint(port, func(endpoint discoveryv1.Endpoint, number int32) {
		state := backendState(endpoint, r.in.Waiting)
		address := endpoint.Addresses[0]
		if state == endpointGone || !wanted(endpoint) || !r.withinBound(address) {
			return
		}
		id := r.in.Interfaces[address]
		switch {
		case id == "" && !MayHaveInterface(r.in.Blocks, address):
			outside = append(outside, address)
			return
		case id == "":
			missing = append(missing, address)
			return
		}
		backend := Backend{Kind: KindInterface, ID: id, IP: address, Port: int(number), Weight: weight, Zone: ptr.Deref(endpoint.Zone, "")}
		if state == endpointTerminating {
			terminating = append(terminating, backend)
		} else {
			ready = append(ready, backend)
		}
	})
	set.holdRegistered(r.in.Held)
	set.holdRegistered(sets.New(missing...))
	// They are no backends now: of a group that is to take the place of another one they say that it lacks some.
	set.holdRegistered(sets.New(outside...))
	if set.portless = !withPort; set.portless {
		set.holdRegistered(listedAddresses(r.in))
	}
	slices.SortFunc(ready, byAddress)
	slices.SortFunc(terminating, byAddress)
	set.Backends = append(set.Backends, ready...)
	problems := r.interfaceProblems(outside, missing)
	if r.beyond > 0 {
		problems = append(problems,
			problem.Newf(problem.ReasonFeatureNotSupported, "%d addresses of pods are not backends: a Service can have at most %d", r.beyond,
				MaxPods))
	}
	return terminating, problems
}

// withinBound reports whether an address is among those that a Service may have.
func (r *Resolver) withinBound(address string) bool { return r.beyond == 0 || r.within.Has(address) }

func byAddress(a, b Backend) int { return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port)) }

func (r *Resolver) interfaceProblems(outside, missing []string) []problem.Problem {
	var problems []problem.Problem
	if r.in.InterfacesUnread {
		missing = nil // the error of the read says so
	}
	if len(outside) > 0 {
		slices.Sort(outside)
		problems = append(problems,
			problem.Newf(problem.ReasonSkipSyncBackends, "addresses outside of the VPC cannot be backends: %s", problem.Some(outside)))
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		problems = append(problems,
			problem.Newf(problem.ReasonSkipSyncBackends, "no network interface of the VPC has the addresses %s", problem.Some(missing)))
	}
	return problems
}

// backendState is the state of an endpoint whose address is to be a backend.
func backendState(endpoint discoveryv1.Endpoint, waiting sets.Set[string]) endpointState {
	if state := stateOf(endpoint); state != endpointGone || !waiting.Has(endpoint.Addresses[0]) {
		return state
	}
	return endpointReady
}

// MayHaveInterface reports whether a network interface of the VPC may have the address; without blocks every one may.
func MayHaveInterface(blocks []netip.Prefix, text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && (len(blocks) == 0 || slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(address) }))
}

// PodAddress is the address of a pod. The UID is empty where the endpoint names no pod.
type PodAddress struct {
	Address string
	UID     types.UID
}

// PodAddresses are the addresses whose network interfaces must be known to build the groups of a Service, each once.
// There are at most [MaxPods].
func PodAddresses(in Input) []PodAddress {
	addresses := allPodAddresses(in)
	return addresses[:min(len(addresses), MaxPods)]
}

func allPodAddresses(in Input) []PodAddress {
	var addresses []PodAddress
	for endpoint := range PodEndpoints(in) {
		if backendState(endpoint, in.Waiting) == endpointGone {
			continue
		}
		address := PodAddress{Address: endpoint.Addresses[0]}
		if endpoint.TargetRef != nil {
			address.UID = endpoint.TargetRef.UID
		}
		addresses = append(addresses, address)
	}
	slices.SortFunc(addresses, func(a, b PodAddress) int { return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.UID, b.UID)) })
	return slices.CompactFunc(addresses, func(a, b PodAddress) bool { return a.Address == b.Address })
}

// MaxPods is how many addresses of pods are backends of a Service: more than a load balancer takes (the quota of a CLB is 200, and may be
// raised). EndpointSlices can name any number, and each address costs memory for each port.
const MaxPods = 1000

// boundAddresses notes which addresses count where there are more than [MaxPods]: the first by their order, so that passes agree.
func (r *Resolver) boundAddresses() {
	endpoints := 0
	for _, slice := range r.in.Slices {
		endpoints += len(slice.Endpoints)
	}
	if endpoints <= MaxPods {
		return
	}
	addresses := allPodAddresses(r.in)
	if r.beyond = len(addresses) - MaxPods; r.beyond > 0 {
		r.within = sets.New[string]()
		for _, address := range addresses[:MaxPods] {
			r.within.Insert(address.Address)
		}
	}
}
