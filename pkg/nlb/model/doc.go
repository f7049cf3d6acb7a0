// Package model is what a Service has, or has to have, on an NLB, and the plan that leads from one to the other. It is pure.
package model
