// Package policy decides what a namespace may use of the account: existing load balancers, and resources that annotations name by ID. It is
// pure, and the same for every product.
package policy
