package slb

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"

// Rights are what the service controller needs at the API server. Endpoints are read only where the role has no right to
// EndpointSlices, which this one has.
func Rights() []rights.Right {
	return []rights.Right{
		{Resource: "services", Verbs: []string{"list", "watch"}, Why: "the Services to serve"},
		{Resource: "services/status", Verbs: []string{"patch"}, Why: "address, conditions, finalizer and label of a Service"},
		{Resource: "nodes", Verbs: []string{"list", "watch"}, Why: "members of load balancers"},
		{Group: "discovery.k8s.io", Resource: "endpointslices", Verbs: []string{"list", "watch"}, Why: "members of load balancers"},
		{Resource: "pods", Verbs: []string{"get"}, Rare: true, Why: "readiness gates: endpoints that are not ready and whose addresses are to be members"},
		{Resource: "pods/status", Verbs: []string{"patch"}, Rare: true, Why: "readiness gates of pods that are members"},
	}
}
