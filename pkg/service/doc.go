// Package service reconciles Services of type LoadBalancer, whatever the load balancer product.
//
// It is the frame: the [Controller] and its queue, one pass as a list of stages ([Reconciler.Reconcile]), the finalizer, label,
// status and conditions of a Service, events, readiness gates, the timer for drift, locks and metrics. The products that it is given
// implement [driver.Engine]; it knows none of them.
//
// Start with pass.go: the method ensure reads from top to bottom.
package service
