package fabric

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Resolve returns the addresses that the name of a load balancer stands for, as the cloud's name servers answer: for an NLB those of its
// Active zones, the public ones of an internet NLB and the private ones of another. ok is false for a name that nobody has.
func (f *Fabric) Resolve(name string) (addresses []netip.Addr, ok bool) {
	name = strings.TrimSuffix(name, ".")
	f.store.View(func() {
		now := f.store.Now()
		for lb := range f.store.NLBs.All() {
			if strings.EqualFold(lb.DNSName, name) && answers(lb, now) {
				addresses, ok = append(AddressesOf(lb, now), f.leftAddresses(lb, now)...), true
			}
		}
	})
	return addresses, ok
}

// leftAddresses are addresses of zones that were removed a moment ago: none, because a zone leaves the name at once.
func (f *Fabric) leftAddresses(lb *cloud.NLB, now time.Time) []netip.Addr {
	var left []netip.Addr
	for _, z := range lb.LeftZones {
		if now.Before(z.Until) && !f.holds("network.nlb-removed-zone-names") {
			left = append(left, addressesIn(z.NLBZone)...)
		}
	}
	return left
}

// AddressesOf are the addresses that the name of an NLB stands for. The caller holds the store's lock.
func AddressesOf(lb *cloud.NLB, now time.Time) []netip.Addr {
	addresses := []netip.Addr{}
	for _, z := range lb.Zones {
		if z.Status != cloud.NLBActive || !answers(lb, now) {
			continue
		}
		addresses = append(addresses, addressesIn(z)...)
	}
	return addresses
}

// addressesIn are the addresses of a name in one zone.
func addressesIn(z cloud.NLBZone) []netip.Addr {
	var addresses []netip.Addr
	for _, ip := range []string{cloud.OrDefault(z.PublicIP, z.PrivateIP), z.IPv6} {
		if addr, err := netip.ParseAddr(ip); err == nil {
			addresses = append(addresses, addr)
		}
	}
	return addresses
}

// hosts reads "host:port". The addresses of a name take turns, as in the answers of name servers.
func (f *Fabric) hosts(addr string) (hosts []netip.Addr, port int, err error) {
	host, digits, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, 0, fmt.Errorf("dial %q: %w", addr, err)
	}
	if port, err = strconv.Atoi(digits); err != nil {
		return nil, 0, fmt.Errorf("dial %q: %w", addr, err)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, port, nil
	}
	found, ok := f.Resolve(host)
	if !ok || len(found) == 0 {
		return nil, 0, fmt.Errorf("dial %q: %w", addr, &net.DNSError{Err: "no load balancer has the name", Name: host, IsNotFound: true})
	}
	first := int(f.turn.Add(1)-1) % len(found)
	return slices.Concat(found[first:], found[:first]), port, nil
}
