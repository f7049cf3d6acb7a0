package policy

import (
	"net/netip"
	"slices"
)

// RestrictsAddresses reports whether not every address of an EndpointSlice may be a backend server.
func (p Policy) RestrictsAddresses() bool { return p.EndpointAddresses == AddressesPods }

// AllowsAddress reports whether a rule lets Services of the namespace send to the address, whatever has it.
func (p Policy) AllowsAddress(namespace string, address netip.Addr) bool {
	return slices.ContainsFunc(p.AllowedAddresses, func(rule AddressRule) bool {
		return matchesAny(rule.Namespaces, namespace) && slices.ContainsFunc(rule.CIDRs, func(cidr string) bool {
			block, err := netip.ParsePrefix(cidr) // [Policy.Check] has rejected others
			return err == nil && block.Contains(address)
		})
	})
}
