// Package backend decides which backends a port of a Service has, from EndpointSlices, Endpoints, Nodes and pods: nodes at the node
// port, or addresses of pods at the target port, with their weights, and those that drain. Where the quotas of the cloud have no room for
// all of them, it chooses. It is pure, and knows no load balancer product.
package backend
