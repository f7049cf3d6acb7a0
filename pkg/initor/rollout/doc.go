// Package rollout runs the initializer on the nodes of a cluster from a workstation: it makes the pods and what they need,
// follows them node by node, and takes away what it made.
//
// It does not find out provider IDs and does not write Nodes: the pods do, with package initor and a role of their own. It
// touches no object that it did not make.
package rollout
