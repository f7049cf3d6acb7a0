package provider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"
)

// rights are those that the settings and the role itself make needed.
func (e *examination) rights(ctx context.Context) []rights.Set {
	var needed []rights.Set
	for _, set := range Rights() {
		if set.Feature != "routes" || len(e.settings.ClusterCIDRs) > 0 {
			needed = append(needed, set)
		}
	}
	// Where this cannot be asked, the questions about the other rights say so.
	if slices, err := mayListEndpointSlices(ctx, e.kube); err == nil && !slices {
		instead := rights.ToWatch("", "endpoints", "backends of load balancers, as EndpointSlices may not be read")
		needed = append(needed, rights.Set{Feature: "services", Rights: []rights.Right{instead}})
	}
	if e.policy().RestrictsAddresses() {
		needed = append(needed, rights.Set{Feature: "policy", Rights: []rights.Right{
			rights.ToWatch("", "pods", "endpointAddresses pods: without it, no Pod becomes a backend server by its address"),
		}})
	}
	if e.settings.ControllerIdentities {
		needed = append(needed, rights.Set{Feature: "--use-service-account-credentials", Rights: []rights.Right{{
			Resource: "serviceaccounts/token", Namespace: metav1.NamespaceSystem, Verbs: []string{"create"}, Optional: true,
			Why: "an identity of its own for each controller, in place of this process's",
		}}})
	}
	return needed
}
