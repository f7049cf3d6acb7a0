package backend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Unserved reports what keeps nodes or endpoints of the Service from being backends although nothing is wrong with its ports: a family of
// addresses that its backends do not have, and nodes whose instance is not known yet. families are those of the Service.
func (in Input) Unserved(families []corev1.IPFamily) []problem.Problem {
	if found, ok := in.otherFamily(families); ok {
		return []problem.Problem{found}
	}
	names := in.Nodes.Unresolved()
	switch {
	case in.Pods:
		return nil // nodes are no backends, whatever they lack
	case in.Local:
		on := in.nodesOfEndpoints()
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !on.Has(name) })
	}
	if len(names) == 0 {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonSkipSyncBackends, "nodes without provider ID are not backends yet: %s",
		problem.Some(names))}
}

// otherFamily reports a Service, or endpoints, that have no address of the family by which backends are reached.
func (in Input) otherFamily(families []corev1.IPFamily) (found problem.Problem, ok bool) {
	ipVersion := annotation.FamilyIPv6
	if in.NLB {
		ipVersion = annotation.DualStackNLB
	}
	has := func(family corev1.IPFamily) bool {
		return in.Counts(&discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressType(family)})
	}
	if len(families) > 0 && !slices.ContainsFunc(families, has) {
		return problem.Newf(problem.ReasonFeatureNotSupported,
			"ipFamilies %v: backend servers are reached by %s, which the Service does not have; IPv6 backend servers need %s: eni, %s: %s and %s: ipv6",
			families, in.Family, annotation.BackendType, annotation.IPVersion, ipVersion, annotation.BackendIPVersion), true
	}
	listed, usable := false, false
	for _, slice := range in.Slices {
		listed, usable = listed || len(slice.Endpoints) > 0, usable || len(slice.Endpoints) > 0 && in.Counts(slice)
	}
	if !listed || usable {
		return problem.Problem{}, false
	}
	return problem.Newf(problem.ReasonFeatureNotSupported,
		"none of the endpoints has an address of %s, by which backend servers are reached; IPv6 backend servers need %s: eni, %s: %s and %s: ipv6",
		in.Family, annotation.BackendType, annotation.IPVersion, ipVersion, annotation.BackendIPVersion), true
}

// nodesOfEndpoints are the names of the nodes that run endpoints of the Service.
func (in Input) nodesOfEndpoints() sets.Set[string] {
	names := sets.New[string]()
	for _, slice := range in.Slices {
		for i := range slice.Endpoints {
			if name := slice.Endpoints[i].NodeName; name != nil && in.Counts(slice) {
				names.Insert(*name)
			}
		}
	}
	return names
}

// WithoutNodePort reports a port without node port, at which nodes cannot be backends.
func WithoutNodePort(port corev1.ServicePort) problem.Problem {
	return problem.Newf(problem.ReasonFeatureNotSupported,
		"port %d has no node port (allocateLoadBalancerNodePorts is false); that needs the annotation %s: eni", port.Port, annotation.BackendType)
}
