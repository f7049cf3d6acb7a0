// Package vpcroute writes every node's pod CIDR into the route tables of the VPC, so that pods reach each other across nodes
// without an overlay, and says in the NetworkUnavailable condition when a node's routes work.
//
// One difference is made per table between what the nodes want ([desiredOf], [diff]) and what the table holds; one [Writer] per
// VPC turns differences into batches. What decides is pure; what reads and writes is thin.
//
// Three rules hold everywhere. The network of a node that joins is unavailable until its routes are seen to work, and what cannot
// be read changes no condition and stops no other table. An entry of another owner is never touched: the description says whose an
// entry is, and one without description goes only when it is in the way of a node and its instance is proven gone. Many entries
// never go at once without such a proof.
//
// It assigns no pod CIDR (the kube-controller-manager does) and makes no route table.
package vpcroute
