// Package initor gives the node it runs on its provider ID: it finds out which ECS instance the node is, and writes
// spec.providerID if that is empty.
//
// It never changes a provider ID that is there, sets no other field, and makes no cloud resource. It needs to get and
// patch nodes, and nothing more.
package initor
