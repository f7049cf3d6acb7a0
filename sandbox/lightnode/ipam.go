package lightnode

import (
	"fmt"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// firstPodOffset leaves the first two addresses of a pod CIDR out: the network's own and the bridge's.
const firstPodOffset = 2

// ipam hands out pod addresses. An address belongs to a pod UID until it is released, so that a repeated request is harmless.
type ipam struct {
	mu     sync.Mutex
	claims map[types.UID]map[netip.Prefix]netip.Addr // one of each range: a pod of two IP versions has two
	taken  map[netip.Addr]types.UID
	last   map[netip.Prefix]netip.Addr // the address given out last: others come first, like host-local's, so reuse is late
}

func newIPAM() *ipam {
	return &ipam{claims: map[types.UID]map[netip.Prefix]netip.Addr{}, taken: map[netip.Addr]types.UID{}, last: map[netip.Prefix]netip.Addr{}}
}

// claim gives pod an address out of cidr, the same one each time. It fails when cidr is malformed or used up.
func (a *ipam) claim(pod types.UID, cidr string) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("pod CIDR %q: %w", cidr, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr, ok := a.claims[pod][prefix]; ok {
		return addr, nil
	}
	first := prefix.Masked().Addr()
	for range firstPodOffset {
		first = first.Next()
	}
	start, ok := a.last[prefix]
	if start = start.Next(); !ok || !usable(prefix, start) {
		start = first
	}
	for addr := start; ; {
		if _, used := a.taken[addr]; !used && usable(prefix, addr) {
			if a.claims[pod] == nil {
				a.claims[pod] = map[netip.Prefix]netip.Addr{}
			}
			a.claims[pod][prefix], a.taken[addr], a.last[prefix] = addr, pod, addr
			return addr, nil
		}
		if addr = addr.Next(); !usable(prefix, addr) {
			addr = first
		}
		if addr == start {
			return netip.Addr{}, fmt.Errorf("pod CIDR %s has no free address", cidr)
		}
	}
}

// release frees the addresses of a pod that is gone.
func (a *ipam) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, addr := range a.claims[pod] {
		delete(a.taken, addr)
	}
	delete(a.claims, pod)
}

// usable leaves out the last address of the prefix, IPv4's broadcast.
func usable(prefix netip.Prefix, addr netip.Addr) bool {
	return prefix.Contains(addr) && prefix.Contains(addr.Next())
}
