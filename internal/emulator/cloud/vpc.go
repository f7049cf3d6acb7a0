package cloud

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// VPC is a virtual private cloud.
type VPC struct {
	Object
	Name, CIDR, RouterID string
	// IPv6 is not valid where the VPC has no IPv6.
	IPv6      netip.Prefix
	IsDefault bool
	Tags      Tags
	// BatchUntil is when the last batch of route changes has settled; another one before that is a TaskConflict.
	BatchUntil time.Time
}

// VSwitch is a subnet of a VPC in one zone.
type VSwitch struct {
	Object
	Name, VPCID, ZoneID string
	Prefix              netip.Prefix
	// IPv6 is not valid where the vSwitch has no IPv6.
	IPv6         netip.Prefix
	RouteTableID string
	IsDefault    bool
	Tags         Tags
	taken        map[netip.Addr]struct{}
	takenIPv6    int // how many of taken are IPv6 addresses
	cursor       netip.Addr
}

// RouteTable is a route table of a VPC.
type RouteTable struct {
	Object
	Name, Description, VPCID, RouterID string
	// Type is System (the one that every VPC has) or Custom.
	Type          string
	AssociateType string
	Phase         Phase
	Tags          Tags
	Entries       Table[*RouteEntry]
	// Refused counts the writes that were refused because an entry was in transition; the codes take turns by it.
	Refused int
	byCIDR  map[netip.Prefix]*RouteEntry
}

// RouteEntry is a custom or system entry of a route table.
type RouteEntry struct {
	Object
	Name, Description string
	CIDR              netip.Prefix
	NextHopID         string
	NextHopType       string
	// System entries belong to the VPC and can be neither created nor deleted by a user.
	System bool
	// Learned is the type of a system entry that the table has learned from elsewhere, "" for all others.
	Learned string
	Phase   Phase
}

// Statuses of a route entry.
const (
	Available = "Available"
	Deleting  = "Deleting"
	gone      = ""
)

// ipv6Gateway is the type of next hop of the entry that a table of a VPC with IPv6 comes with.
const ipv6Gateway = "IPv6Gateway"

// AddBuiltIn gives a new table the entries that the cloud makes by itself: one of the system's for each range of each
// vSwitch and, where the VPC has IPv6, a custom one for all other IPv6 destinations. Source:
// https://www.alibabacloud.com/help/en/ipv6-gateway/user-guide/create-and-manage-ipv6-routes.
func (s *Store) AddBuiltIn(t *RouteTable, n *VPC) {
	if n.IPv6.IsValid() {
		t.AddEntry(&RouteEntry{
			Object: s.NewObject("rte"), CIDR: netip.PrefixFrom(netip.IPv6Unspecified(), 0),
			NextHopID: "ipv6gw-" + n.ID, NextHopType: ipv6Gateway, Phase: Steady(Available),
		})
	}
	for _, v := range s.VSwitchesOf(n.ID) {
		s.addLocal(t, v)
	}
}

// addLearned gives a new table the entries that it has learned from elsewhere.
func (s *Store) addLearned(t *RouteTable, routes []LearnedRouteConfig) error {
	for _, r := range routes {
		prefix, err := netip.ParsePrefix(r.CIDR)
		if err != nil || (r.Type != "CEN" && r.Type != "BGP") {
			return fmt.Errorf("learnedRoutes: %q of type %q: a CIDR, and CEN or BGP are accepted", r.CIDR, r.Type)
		}
		t.AddEntry(&RouteEntry{
			Object: s.NewObject("rte"), CIDR: prefix.Masked(), NextHopID: r.NextHop, NextHopType: "Attachment", System: true, Learned: r.Type,
			Phase: Steady(Available),
		})
	}
	return nil
}

func (s *Store) addLocal(t *RouteTable, v *VSwitch) {
	for _, prefix := range []netip.Prefix{v.Prefix, v.IPv6} {
		if prefix.IsValid() {
			t.AddEntry(&RouteEntry{Object: s.NewObject("rte"), CIDR: prefix, NextHopType: "local", System: true, Phase: Steady(Available)})
		}
	}
}

// AddEntry puts an entry into the table.
func (t *RouteTable) AddEntry(e *RouteEntry) {
	t.index(e)
	t.Entries.Add(e)
}

func (t *RouteTable) index(e *RouteEntry) {
	if t.byCIDR == nil {
		t.byCIDR = map[netip.Prefix]*RouteEntry{}
	}
	t.byCIDR[e.CIDR] = e
}

// RemoveEntry takes an entry out of the table.
func (t *RouteTable) RemoveEntry(e *RouteEntry) {
	delete(t.byCIDR, e.CIDR)
	t.Entries.Delete(e)
}

// EntryByCIDR finds the entry of a destination.
func (t *RouteTable) EntryByCIDR(p netip.Prefix) (*RouteEntry, bool) {
	e, ok := t.byCIDR[p]
	return e, ok
}

// CustomEntries counts the entries that use up the quota.
func (t *RouteTable) CustomEntries() int {
	n := 0
	for e := range t.Entries.All() {
		if !e.System {
			n++
		}
	}
	return n
}

// UsersEntries counts the entries that somebody has made: the custom one for all other IPv6 destinations comes with the table.
func (t *RouteTable) UsersEntries() int {
	n := t.CustomEntries()
	if e, ok := t.EntryByCIDR(netip.PrefixFrom(netip.IPv6Unspecified(), 0)); ok && e.NextHopType == ipv6Gateway {
		n--
	}
	return n
}

// Unsettled reports whether an entry of the table is in transition.
func (t *RouteTable) Unsettled(now time.Time) bool {
	for e := range t.Entries.All() {
		if !e.Phase.Settled(now) {
			return true
		}
	}
	return false
}

// Lookup finds the Available entry with the longest prefix that holds an address.
func (t *RouteTable) Lookup(addr netip.Addr, now time.Time) (*RouteEntry, bool) {
	var best *RouteEntry
	for e := range t.Entries.All() {
		if !e.CIDR.Contains(addr) || e.Phase.At(now) != Available {
			continue
		}
		if best == nil || e.CIDR.Bits() > best.CIDR.Bits() {
			best = e
		}
	}
	return best, best != nil
}

// BeginDelete starts the removal of an entry; with a settle time it is Deleting until it is gone.
func (s *Store) BeginDelete(t *RouteTable, e *RouteEntry, now time.Time) {
	e.Phase = s.Begin(Deleting, gone, now)
	if e.Phase.Settled(now) {
		t.RemoveEntry(e)
	}
}

// BeginRelease starts the release of an EIP.
func (s *Store) BeginRelease(e *EIP, now time.Time) {
	e.Phase = s.Begin(Releasing, gone, now)
	s.reapLocked(now)
}

// BeginDeleteTable starts the removal of a route table.
func (s *Store) BeginDeleteTable(t *RouteTable, now time.Time) {
	t.Phase = s.Begin(Deleting, gone, now)
	s.reapLocked(now)
}

// Reap drops what has finished its deletion. The caller holds the lock.
func (s *Store) Reap(now time.Time) { s.reapLocked(now) }

// reapLocked drops what has finished its deletion.
func (s *Store) reapLocked(now time.Time) {
	s.reapNLB(now)
	for _, e := range s.EIPs.Select(func(e *EIP) bool { return e.Phase.At(now) == gone }) {
		s.EIPs.Delete(e)
	}
	for _, t := range s.RouteTables.Select(func(t *RouteTable) bool { return t.Phase.At(now) == gone }) {
		s.RouteTables.Delete(t)
	}
	for t := range s.RouteTables.All() {
		for _, e := range t.Entries.Select(func(e *RouteEntry) bool { return e.Phase.At(now) == gone }) {
			t.RemoveEntry(e)
		}
	}
}

// TablesOf returns the route tables of a VPC.
func (s *Store) TablesOf(vpcID string) []*RouteTable {
	return s.RouteTables.Select(func(t *RouteTable) bool { return t.VPCID == vpcID })
}

// VSwitchesOf returns the vSwitches of a VPC.
func (s *Store) VSwitchesOf(vpcID string) []*VSwitch {
	return s.VSwitches.Select(func(v *VSwitch) bool { return v.VPCID == vpcID })
}

// Zones returns the zones that have a vSwitch, in the order of their first one.
func (s *Store) Zones() []string {
	var zones []string
	for v := range s.VSwitches.All() {
		if !slices.Contains(zones, v.ZoneID) {
			zones = append(zones, v.ZoneID)
		}
	}
	return zones
}

// ErrNoAddress means that a vSwitch has no free address.
var ErrNoAddress = errors.New("the vSwitch has no free address")

// ErrAddressTaken means that the wanted address is in use or cannot be used.
var ErrAddressTaken = errors.New("the address is in use or outside the vSwitch")

// TakeAddress allocates an address: the wanted one, or the next free one when want is "".
func (s *Store) TakeAddress(v *VSwitch, want string) (string, error) {
	if want != "" {
		addr, err := netip.ParseAddr(want)
		if err != nil || !v.usable(addr) || v.isTaken(addr) {
			return "", fmt.Errorf("address %s in vSwitch %s: %w", want, v.ID, ErrAddressTaken)
		}
		v.take(addr)
		return want, nil
	}
	if v.Free() <= 0 {
		return "", fmt.Errorf("vSwitch %s: %w", v.ID, ErrNoAddress)
	}
	addr := v.cursor
	for !v.usable(addr) || v.isTaken(addr) {
		if addr = addr.Next(); !v.Prefix.Contains(addr) {
			addr = v.Prefix.Addr()
		}
	}
	v.take(addr)
	v.cursor = addr.Next()
	return addr.String(), nil
}

// TakeIPv6 allocates a free IPv6 address of a vSwitch.
func (s *Store) TakeIPv6(v *VSwitch) (string, error) {
	if !v.IPv6.IsValid() {
		return "", fmt.Errorf("vSwitch %s has no IPv6 range", v.ID)
	}
	first := v.IPv6.Masked().Addr().As16()
	first[13] = 1 // apart from the low addresses, which configurations give to instances
	addr := netip.AddrFrom16(first)
	for v.isTaken(addr) {
		addr = addr.Next()
	}
	v.take(addr)
	return addr.String(), nil
}

// ReleaseAddress gives an address back.
func (s *Store) ReleaseAddress(vSwitchID, ip string) {
	if v, ok := s.VSwitches.Get(vSwitchID); ok {
		v.release(ip)
	}
}

// reserved is how many addresses of a vSwitch the cloud keeps: the first and the last three.
const reserved = 4

// usable reports whether the cloud hands out the address.
func (v *VSwitch) usable(addr netip.Addr) bool {
	if !v.Prefix.Contains(addr) || addr == v.Prefix.Addr() {
		return false
	}
	for range reserved - 1 {
		if addr = addr.Next(); !v.Prefix.Contains(addr) {
			return false
		}
	}
	return true
}

// Contains reports whether an address is one that the vSwitch gives away.
func (v *VSwitch) Contains(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && v.usable(addr)
}

// CanTake reports whether an address is usable and free.
func (v *VSwitch) CanTake(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && v.usable(addr) && !v.isTaken(addr)
}

// Free counts the addresses left.
func (v *VSwitch) Free() int {
	return 1<<(v.Prefix.Addr().BitLen()-v.Prefix.Bits()) - reserved - len(v.taken) + v.takenIPv6
}

func (v *VSwitch) isTaken(addr netip.Addr) bool {
	_, taken := v.taken[addr]
	return taken
}

func (v *VSwitch) take(addr netip.Addr) {
	if v.taken == nil {
		v.taken = map[netip.Addr]struct{}{}
	}
	if addr.Is6() && !v.isTaken(addr) {
		v.takenIPv6++
	}
	v.taken[addr] = struct{}{}
}

func (v *VSwitch) release(ip string) {
	if addr, err := netip.ParseAddr(ip); err == nil {
		if addr.Is6() && v.isTaken(addr) {
			v.takenIPv6--
		}
		delete(v.taken, addr)
	}
}
