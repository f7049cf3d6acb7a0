// Package testkube holds Nodes, Services and EndpointSlices for tests, and a fake API server.
package testkube
