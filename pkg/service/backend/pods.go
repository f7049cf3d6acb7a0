package backend

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// pods returns the addresses of endpoints, at the target port.
func (r *Resolver) pods(port corev1.ServicePort) (Set, []problem.Problem) {
	set := Set{Backends: []Backend{}, Doubt: len(r.in.Slices) == 0}
	problems := r.addPods(&set, port, r.in.Params.Int(annotation.DefaultWeight, alicloud.MaxWeight), func(discoveryv1.Endpoint) bool { return true })
	return set, problems
}

// addVirtual adds the pods on virtual nodes, which have no node port, to a set whose other backends are nodes.
func (r *Resolver) addVirtual(set *Set, port corev1.ServicePort, weight int) []problem.Problem {
	virtual := virtualNodes(r.in.Nodes)
	if virtual.Len() == 0 {
		return nil
	}
	if len(r.in.Slices) == 0 && !set.Doubt {
		set.Doubt, set.Gone = true, instanceIDs(r.in.Nodes)
	}
	return r.addPods(set, port, weight, func(endpoint discoveryv1.Endpoint) bool {
		return endpoint.NodeName != nil && virtual.Has(*endpoint.NodeName)
	})
}

// addPods adds the endpoints that are wanted. One without a network interface blocks removals until it has one: it may be
// the very member that looks unwanted.
func (r *Resolver) addPods(set *Set, port corev1.ServicePort, weight int, wanted func(discoveryv1.Endpoint) bool) []problem.Problem {
	var problems []problem.Problem
	r.each(port, func(endpoint discoveryv1.Endpoint, number int32) {
		state := memberState(endpoint, r.in.Waiting)
		if state == EndpointGone || !wanted(endpoint) {
			return
		}
		address := endpoint.Addresses[0]
		id := r.in.Interfaces[address]
		if id == "" && !MayHaveInterface(r.in.Blocks, address) {
			problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends, "the address %s is outside of the VPC and cannot be a member", address))
			return
		}
		if id == "" {
			set.Doubt = true
			problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends, "no network interface of the VPC has the address %s", address))
			return
		}
		backend := Backend{Kind: KindInterface, ID: id, IP: address, Port: int(number), Weight: weight}
		if endpoint.Zone != nil {
			backend.Zone = *endpoint.Zone
		}
		if state == EndpointTerminating {
			backend.Weight = 0
			set.Draining = append(set.Draining, backend)
			return
		}
		set.Backends = append(set.Backends, backend)
	})
	byAddress := func(a, b Backend) int { return cmp.Compare(a.IP, b.IP) }
	slices.SortStableFunc(set.Backends, byAddress)
	slices.SortStableFunc(set.Draining, byAddress)
	return problems
}

func virtualNodes(nodes []Node) sets.Set[string] {
	virtual := sets.New[string]()
	for _, node := range nodes {
		if node.Virtual {
			virtual.Insert(node.Name)
		}
	}
	return virtual
}

// MayHaveInterface reports whether a network interface of the VPC may have the address; without blocks every one may.
func MayHaveInterface(blocks []netip.Prefix, text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && (len(blocks) == 0 || slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(address) }))
}

// PodAddresses are the addresses whose network interfaces must be known to build the groups of a Service.
func PodAddresses(in Input) []string {
	var addresses []string
	eachMemberAddress(in, func(endpoint discoveryv1.Endpoint) {
		if memberState(endpoint, in.Waiting) != EndpointGone {
			addresses = append(addresses, endpoint.Addresses[0])
		}
	})
	slices.Sort(addresses)
	return slices.Compact(addresses)
}
