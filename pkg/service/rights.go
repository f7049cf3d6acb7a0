package service

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"

// Rights are what the service controller needs at the API server. Endpoints are read only where the role has no right to
// EndpointSlices, which this one has.
func Rights() []rights.Right {
	slices := rights.ToWatch("discovery.k8s.io", "endpointslices",
		"backends of load balancers, in place of Endpoints, which end at 1,000 addresses")
	slices.Optional = true
	return []rights.Right{
		rights.ToWatch("", "services", "the Services to serve"),
		{Resource: "services/status", Verbs: []string{"patch"}, Why: "address, conditions, finalizer and label of a Service"},
		rights.ToWatch("", "nodes", "backends of load balancers"),
		{
			Resource: "namespaces", Verbs: []string{"get"}, Rare: []string{"get"}, Optional: true,
			Why: "the annotation paused: it ends for Services that are deleted with their namespace",
		},
		slices,
		{
			Resource: "pods", Verbs: []string{"get"}, Rare: []string{"get"}, Optional: true,
			Why: "readiness gates: endpoints that are not ready and whose addresses are to be backends",
		},
		{
			Resource: "pods", Verbs: []string{"list", "watch"}, Rare: []string{"list", "watch"}, Optional: true,
			Why: "endpointAddresses pods: the addresses of pods in namespaces whose Services have pods as backends",
		},
		{
			Resource: "pods/status", Verbs: []string{"patch"}, Rare: []string{"patch"}, Optional: true,
			Why: "readiness gates of pods that are backends",
		},
	}
}
