// Package observe reads what a Service has on an NLB. It only reads.
package observe
