// Package build decides what a Service is to have on a CLB. It is pure.
package build
