// Package vpcroute writes every node's pod CIDR into the route tables of the VPC, so that pods reach each other across
// nodes without an overlay, and tells Kubernetes through the NetworkUnavailable condition when a node's routes work.
//
// One difference is made per table between what the nodes want and what the table holds; one [Writer] per VPC turns
// differences into batches. The package never changes an entry that is not a node's: entries outside the cluster CIDR,
// the cloud's own, ones with several next hops or with a next hop that is no node stay as they are, and one that stands
// in the way is reported.
//
// It assigns no pod CIDR (the kube-controller-manager does) and makes no route table.
package vpcroute
