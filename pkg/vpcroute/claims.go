package vpcroute

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// claims are pod CIDRs and the nodes that own them. They never overlap. Finding an overlap takes one look-up per prefix length
// in use, of which a cluster has one or two, so that thousands of nodes cost no comparison of each with each.
type claims struct {
	owner map[netip.Prefix]*corev1.Node
	// inside names, for each prefix length in use, a claim inside a range of that length.
	inside  map[netip.Prefix]netip.Prefix
	lengths map[family]map[int]struct{}
}

// family is 32 or 128, the bits of an address.
type family int

func familyOf(cidr netip.Prefix) family { return family(cidr.Addr().BitLen()) }

func newClaims() *claims {
	return &claims{owner: map[netip.Prefix]*corev1.Node{}, inside: map[netip.Prefix]netip.Prefix{}, lengths: map[family]map[int]struct{}{}}
}

// add records the node's claim, which must overlap with no other.
func (c *claims) add(cidr netip.Prefix, node *corev1.Node) {
	c.use(cidr)
	c.owner[cidr] = node
	for bits := range c.lengths[familyOf(cidr)] {
		if bits < cidr.Bits() {
			c.inside[netip.PrefixFrom(cidr.Addr(), bits).Masked()] = cidr
		}
	}
}

// overlapping returns a claim that overlaps with the CIDR.
func (c *claims) overlapping(cidr netip.Prefix) (netip.Prefix, *corev1.Node, bool) {
	if claim, node, ok := c.around(cidr); ok {
		return claim, node, true
	}
	c.use(cidr)
	claim, ok := c.inside[cidr]
	return claim, c.owner[claim], ok
}

// around returns the claim that is the CIDR or contains it.
func (c *claims) around(cidr netip.Prefix) (netip.Prefix, *corev1.Node, bool) {
	for bits := range c.lengths[familyOf(cidr)] {
		if bits > cidr.Bits() {
			continue
		}
		claim := netip.PrefixFrom(cidr.Addr(), bits).Masked()
		if node, ok := c.owner[claim]; ok {
			return claim, node, true
		}
	}
	return netip.Prefix{}, nil, false
}

// use takes the CIDR's prefix length into use.
func (c *claims) use(cidr netip.Prefix) {
	lengths := c.lengths[familyOf(cidr)]
	if lengths == nil {
		lengths = map[int]struct{}{}
		c.lengths[familyOf(cidr)] = lengths
	}
	if _, known := lengths[cidr.Bits()]; known {
		return
	}
	lengths[cidr.Bits()] = struct{}{}
	for claim := range c.owner {
		if familyOf(claim) == familyOf(cidr) && claim.Bits() > cidr.Bits() {
			c.inside[netip.PrefixFrom(claim.Addr(), cidr.Bits()).Masked()] = claim
		}
	}
}
