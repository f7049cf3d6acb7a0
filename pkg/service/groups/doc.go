// Package groups remembers what a process has read of the groups of Services that share load balancers, and where it has put each Service. It is the same for
// every product, and makes no calls. Package sharing decides from it.
package groups
