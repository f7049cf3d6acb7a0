// Package sources holds what passes over all Services read together: the nodes, the addresses of pods in namespaces that need them, and the
// network interfaces and address blocks of the VPC.
package sources
