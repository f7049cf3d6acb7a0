// Package chart tests the chart the way its users have it: with the helm of today and that of yesterday, and installed into a real control
// plane, the sandbox.
//
// It is a module of its own, so that the product's go.mod stays free of Helm.
package chart
