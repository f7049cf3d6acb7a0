// Package sharing decides for a group of Services which of the group's load balancers each of them is on, which ports it has there, and
// whose annotations the attributes of a load balancer come from. It is pure, and the same for every product.
package sharing
