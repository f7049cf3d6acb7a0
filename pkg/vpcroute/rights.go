package vpcroute

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"

// Rights are what the route controller needs at the API server.
func Rights() []rights.Right {
	return []rights.Right{
		rights.ToWatch("", "nodes", "pod CIDRs and provider IDs"),
		{Resource: "nodes/status", Verbs: []string{"patch"}, Why: "the condition NetworkUnavailable"},
	}
}
