// Package service reconciles Services of type LoadBalancer, whatever the load balancer product.
//
// It is the frame: the [Controller] and its queue, one pass as a list of stages ([Reconciler.Reconcile]), the finalizer, label,
// status and conditions of a Service, the [Record] of what was applied, events, readiness gates, the timer for drift, locks and
// metrics. A product is an [Engine] that the frame is given; the frame knows none. What an engine knows of the load balancer of one
// Service is a [Balancer], a value that the frame keeps between passes, and what it wants is a [Decision] with a [Plan].
//
// Start with pass.go: the method ensure reads from top to bottom.
package service
