// Package driver declares what a load balancer product implements for the service controller, and what both know.
//
// A product is an [Engine]. What it knows of the load balancer of one Service is a [Balancer], a value that the controller keeps between
// passes; what a pass wants is a [Decision] with a [Plan]. The [Record] of what was applied is stored on the Service. Besides, the package
// has what every product needs to implement that: parts that may be in doubt, lists that are read together, and proofs of ownership.
package driver
