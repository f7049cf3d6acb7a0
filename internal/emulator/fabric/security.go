package fabric

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// security are the rules of the security groups that a load balancer has joined.
type security []cloud.SecurityRule

// everyone is the priority of the rule by which a load balancer admits everyone whom no other rule names.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/add-an-nlb-instance-to-a-security-group
const everyone = 100

// securityOf reads security groups. The caller holds the store's lock; no rule of a group is changed in place.
func (f *Fabric) securityOf(ids []string) security {
	var rules security
	for _, id := range ids {
		if g, ok := f.store.SecurityGroups.Get(id); ok {
			rules = append(rules, g.Rules...)
		}
	}
	return rules
}

// admits reports whether a source may connect to a port. Of the rules that name the source those with the smallest priority decide, and
// among them one that drops; everybody is admitted with priority 100, so that accept rules alone restrict nothing.
// With acceptsFirst, it is one that accepts.
func (s security) admits(source netip.Addr, network string, port int, acceptsFirst bool) bool {
	priority, admitted := everyone, true
	for _, r := range s {
		if r.Priority > priority || !applies(r, source.Unmap(), network, port) {
			continue
		}
		drops := strings.EqualFold(r.Policy, "drop")
		switch {
		case r.Priority < priority:
			admitted = !drops
		case acceptsFirst:
			admitted = admitted || !drops
		default:
			admitted = admitted && !drops
		}
		priority = r.Priority
	}
	return admitted
}

// applies reports whether a rule is about a connection.
func applies(r cloud.SecurityRule, source netip.Addr, network string, port int) bool {
	if protocol := strings.ToLower(r.Protocol); protocol != "all" && protocol != network {
		return false
	}
	block := r.SourceCIDR
	if source.Is6() {
		block = r.IPv6SourceCIDR
	}
	return holds(block, source) && inRange(r.PortRange, port)
}

// holds reports whether a block, which may be a single address, has an address.
func holds(block string, source netip.Addr) bool {
	if addr, err := netip.ParseAddr(block); err == nil {
		return addr == source
	}
	p, err := netip.ParsePrefix(block)
	return err == nil && p.Contains(source)
}

// inRange reports whether a range such as 80/90 has a port; -1/-1 has all of them.
func inRange(ports string, port int) bool {
	from, to, _ := strings.Cut(ports, "/")
	first, err := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	if err != nil || errLast != nil {
		return false
	}
	return first == -1 || first <= port && port <= last
}
