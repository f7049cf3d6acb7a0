package node

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"

// Rights are what the stock node controllers, which ask this package, and [Controller] need at the API server.
func Rights() []rights.Right {
	return []rights.Right{
		rights.ToWatch("", "nodes", "the nodes to initialise and to watch over"),
		{Resource: "nodes", Verbs: []string{"update"}, Why: "provider ID, labels, and the uninitialized taint taken off"},
		{Resource: "nodes", Verbs: []string{"delete"}, Why: "nodes whose instance is released"},
		{Resource: "nodes", Verbs: []string{"get", "patch"}, Why: "the shutdown taint of stopped instances; provider ID and labels that follow the instance; nodes on premises initialized"},
		{Resource: "nodes/status", Verbs: []string{"patch"}, Why: "addresses"},
	}
}
