// Package chart tests the chart the way its users have it: with Helm 3 and Helm 4, and installed into a real control plane, the sandbox.
//
// It is a module of its own, so that the product's go.mod stays free of Helm.
package chart
