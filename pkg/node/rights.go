package node

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"

// Rights are what the stock node controllers, which ask this package, and [Controller] need at the API server.
func Rights() []rights.Right {
	return []rights.Right{
		rights.ToWatch("", "nodes", "nodes to initialize and to monitor"),
		{Resource: "nodes", Verbs: []string{"update"}, Why: "provider ID, labels, removing the uninitialized taint"},
		{Resource: "nodes", Verbs: []string{"delete"}, Why: "deleting nodes whose instance was released"},
		{Resource: "nodes", Verbs: []string{"get", "patch"}, Why: "shutdown taint of stopped instances; keeping provider ID and labels up to date; initializing nodes on premises"},
		{Resource: "nodes/status", Verbs: []string{"patch"}, Why: "addresses"},
	}
}
