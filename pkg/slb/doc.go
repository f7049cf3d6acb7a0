// Package slb turns Kubernetes Services of type LoadBalancer into Classic Load Balancers (CLB, formerly SLB).
//
// One direction: the Service, its EndpointSlices and the Nodes are built into a [model.Model] ([build.Build], pure); the cloud is read
// into the same type; [diff.Diff] (pure) makes a [model.Plan] of the difference; the engine carries the plan out and is the only
// writer. What was written is remembered, so that most events cost writes only and an unchanged Service costs nothing.
//
// It does not create nodes, routes or instances, does not decide which ECS instance a Node is (see [service.Options].InstanceID),
// and never touches a CLB, listener, vServer group or backend server that does not carry the mark of the Service.
package slb
