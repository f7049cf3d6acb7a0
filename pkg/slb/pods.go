package slb

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// pods makes a group whose members are the addresses of ready endpoints, at the target port.
func (r *resolver) pods(port corev1.ServicePort, mark string) (Group, []Problem) {
	group := r.newGroup(mark)
	group.Doubt = len(r.slices) == 0
	weight := r.params.integer(DefaultWeight, alicloud.MaxWeight)
	var problems []Problem
	r.each(port, func(endpoint discoveryv1.Endpoint, number int32) {
		state := stateOf(endpoint)
		if state == endpointGone {
			return
		}
		address := endpoint.Addresses[0]
		id := r.interfaces[address]
		if id == "" {
			group.Doubt = true
			problems = append(problems, problemf(ReasonSkipSyncBackends, "no network interface of the VPC has the address %s", address))
			return
		}
		member := alicloud.Backend{
			BackendKey: alicloud.BackendKey{Type: alicloud.BackendENI, ServerID: id, ServerIP: address, Port: int(number)},
			Weight:     weight, Description: mark,
		}
		if state == endpointTerminating {
			member.Weight = 0
			group.Draining = append(group.Draining, member)
			return
		}
		group.Backends = append(group.Backends, member)
	})
	byAddress := func(a, b alicloud.Backend) int { return cmp.Compare(a.ServerIP, b.ServerIP) }
	slices.SortFunc(group.Backends, byAddress)
	slices.SortFunc(group.Draining, byAddress)
	return group, problems
}

// podAddresses are the addresses whose network interfaces must be known to build the groups of a Service.
func podAddresses(slicesOfService []*discoveryv1.EndpointSlice) []string {
	var addresses []string
	for _, slice := range slicesOfService {
		for _, endpoint := range slice.Endpoints {
			if len(endpoint.Addresses) > 0 && stateOf(endpoint) != endpointGone {
				addresses = append(addresses, endpoint.Addresses[0])
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}
