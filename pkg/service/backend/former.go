package backend

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Former returns the backends of a port as they have to be in a group that its listener uses and cannot leave yet. The group may have
// backends of another kind, or at other ports, than the port is to have from now on: there are those of ours in it, not none. What is there
// keeps its port, and what joins is of the same kind. Nothing leaves only because its kind is no longer asked for. group is how those that
// are there are marked, see [Entry].
func Former(in Input, port corev1.ServicePort, there []Backend, group string) Set {
	at := slices.IndexFunc(there, func(b Backend) bool { return b.Kind == KindInstance })
	if in.Pods = at < 0; !in.Pods {
		port.NodePort = int32(there[at].Port) //nolint:gosec // a port
	}
	// Nobody has asked for the interfaces of pods where nodes are to be the backends from now on; those that are there are known. Nor says
	// the family of the new backends anything about these: the group takes those that it has.
	in.Interfaces = withThose(in.Interfaces, there)
	in.Family, in.BothFamilies = familiesOf(there)
	set, _ := NewResolver(in).Backends(port, group)
	keepPorts(set.Backends, there)
	keepPorts(set.Draining, there)
	return set
}

// familiesOf returns the family of the pods among the backends, and whether there are both, or none of which anybody knows.
func familiesOf(there []Backend) (family discoveryv1.AddressType, both bool) {
	has := map[discoveryv1.AddressType]bool{}
	for _, b := range there {
		address, err := netip.ParseAddr(b.IP)
		switch {
		case b.Kind != KindInterface || err != nil:
		case address.Is4():
			has[discoveryv1.AddressTypeIPv4] = true
		default:
			has[discoveryv1.AddressTypeIPv6] = true
		}
	}
	if len(has) != 1 {
		return discoveryv1.AddressTypeIPv4, true
	}
	return slices.Collect(maps.Keys(has))[0], false
}

// withThose adds the interfaces of backends to those that are known.
func withThose(interfaces map[string]string, there []Backend) map[string]string {
	all := map[string]string{}
	for _, b := range there {
		if b.Kind == KindInterface {
			all[b.IP] = b.ID
		}
	}
	maps.Copy(all, interfaces)
	return all
}

// listedAddresses are the addresses that stand in an EndpointSlice, whatever it says of them. While it is not known which of them are
// backends of a port, a backend that is none of them is gone all the same.
func listedAddresses(in Input) sets.Set[string] {
	addresses := sets.New[string]()
	for endpoint := range PodEndpoints(in) {
		addresses.Insert(endpoint.Addresses[0])
	}
	return addresses
}

// keepPorts gives pods that are backends already the ports at which they are.
func keepPorts(backends, there []Backend) {
	for i := range backends {
		b := &backends[i]
		at := slices.IndexFunc(there, func(have Backend) bool { return have.Kind == b.Kind && have.ID == b.ID && have.IP == b.IP })
		if at >= 0 {
			b.Port = there[at].Port
		}
	}
}
