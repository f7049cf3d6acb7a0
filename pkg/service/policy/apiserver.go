package policy

import "slices"

// APIServer is what is known of the API servers of the cluster, to recognize a load balancer in front of them. Its zero value knows
// nothing.
type APIServer struct {
	// Addresses are those by which clients reach the API servers, and those of the API servers themselves.
	Addresses []string
	// Port is the port of the API servers, 0 while it is not known.
	Port int
	// Instances are the ECS instances of control-plane nodes, and of the nodes that have an address of an API server.
	Instances []string
}

// HasAddress reports whether clients reach an API server by the address.
func (a APIServer) HasAddress(address string) bool {
	return address != "" && slices.Contains(a.Addresses, address)
}

// Is reports whether a backend server is an API server. An empty ID or address is not known.
func (a APIServer) Is(instanceID, address string, port int) bool {
	return port != 0 && port == a.Port && (instanceID != "" && slices.Contains(a.Instances, instanceID) || a.HasAddress(address))
}
