// Package diff computes the plan that leads from an NLB as it is to the desired one. It is pure.
package diff
