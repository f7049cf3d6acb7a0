// Package groups puts the Services of a group on load balancers that they share: it finds those of the group, has package sharing decide
// where each Service is, and keeps a Service where it is while its move is refused. It is the same for every product, which tells it how to
// read its load balancers, and writes nothing to the cloud.
package groups
