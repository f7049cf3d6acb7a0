package slb

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// pods makes a group whose members are the addresses of endpoints, at the target port.
func (r *resolver) pods(port corev1.ServicePort, mark string) (Group, []Problem) {
	group := r.newGroup(mark)
	group.Doubt = len(r.slices) == 0
	problems := r.addPods(&group, port, r.params.integer(DefaultWeight, alicloud.MaxWeight), func(discoveryv1.Endpoint) bool { return true })
	return group, problems
}

// addVirtual adds the pods on virtual nodes, which have no node port, to a group whose other members are nodes.
func (r *resolver) addVirtual(group *Group, port corev1.ServicePort, weight int) []Problem {
	virtual := virtualNodes(r.nodes)
	if virtual.Len() == 0 {
		return nil
	}
	if len(r.slices) == 0 && !group.Doubt {
		group.Doubt, group.Gone = true, instanceIDs(r.nodes)
	}
	return r.addPods(group, port, weight, func(endpoint discoveryv1.Endpoint) bool {
		return endpoint.NodeName != nil && virtual.Has(*endpoint.NodeName)
	})
}

// addPods adds the endpoints that are wanted. One without a network interface blocks removals until it has one: it may be
// the very member that looks unwanted.
func (r *resolver) addPods(group *Group, port corev1.ServicePort, weight int, wanted func(discoveryv1.Endpoint) bool) []Problem {
	var problems []Problem
	r.each(port, func(endpoint discoveryv1.Endpoint, number int32) {
		state := memberState(endpoint, r.waiting)
		if state == endpointGone || !wanted(endpoint) {
			return
		}
		address := endpoint.Addresses[0]
		id := r.interfaces[address]
		if id == "" && !mayHaveInterface(r.blocks, address) {
			problems = append(problems, problemf(ReasonSkipSyncBackends, "the address %s is outside of the VPC and cannot be a member", address))
			return
		}
		if id == "" {
			group.Doubt = true
			problems = append(problems, problemf(ReasonSkipSyncBackends, "no network interface of the VPC has the address %s", address))
			return
		}
		member := alicloud.Backend{
			BackendKey: alicloud.BackendKey{Type: alicloud.BackendENI, ServerID: id, ServerIP: address, Port: int(number)},
			Weight:     weight, Description: group.Name,
		}
		if state == endpointTerminating {
			member.Weight = 0
			group.Draining = append(group.Draining, member)
			return
		}
		group.Backends = append(group.Backends, member)
	})
	byAddress := func(a, b alicloud.Backend) int { return cmp.Compare(a.ServerIP, b.ServerIP) }
	slices.SortStableFunc(group.Backends, byAddress)
	slices.SortStableFunc(group.Draining, byAddress)
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

// mayHaveInterface reports whether a network interface of the VPC may have the address; without blocks every one may.
func mayHaveInterface(blocks []netip.Prefix, text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && (len(blocks) == 0 || slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(address) }))
}

// podAddresses are the addresses whose network interfaces must be known to build the groups of a Service.
func podAddresses(in Input) []string {
	var addresses []string
	eachMemberAddress(in, func(endpoint discoveryv1.Endpoint) {
		if memberState(endpoint, in.Waiting) != endpointGone {
			addresses = append(addresses, endpoint.Addresses[0])
		}
	})
	slices.Sort(addresses)
	return slices.Compact(addresses)
}
