package fabric

import (
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// loadBalancer is one of any product, as the network sees it.
type loadBalancer struct {
	id, vpcID string
	// vips are where its listeners accept; the load balancer's own address is the first.
	vips []VIP
	// entrances are those listeners that take connections now.
	entrances []entrance
}

// entrance is a listener of a load balancer with its ports, from first to last.
type entrance struct {
	listener    cloud.ListenerID
	first, last int
}

// arrival is how a connection reaches a load balancer: by which listener, address and port, and from where.
type arrival struct {
	listener cloud.ListenerID
	vip      VIP
	port     int
	source   netip.AddrPort
}

// loadBalancers yields those of all products. The caller holds the store's lock.
func (f *Fabric) loadBalancers(now time.Time) iter.Seq[loadBalancer] {
	return func(yield func(loadBalancer) bool) {
		for lb := range f.store.LoadBalancers.All() {
			if !yield(f.clb(lb, now)) {
				return
			}
		}
		for lb := range f.store.NLBs.All() {
			if !yield(f.nlb(lb, now)) {
				return
			}
		}
	}
}

// read reads a listener that carries traffic.
func (f *Fabric) read(id cloud.ListenerID) (s settings, ok bool) {
	f.store.View(func() { s, _, ok = f.lookup(id, f.store.Now(), false) })
	return s, ok
}

// readListener reads a listener that carries traffic, with the backend servers of its group.
func (f *Fabric) readListener(id cloud.ListenerID) (s settings, backends []backend, ok bool) {
	f.store.View(func() { s, backends, ok = f.lookup(id, f.store.Now(), true) })
	return s, backends, ok
}

// lookup reads a listener of any product. The caller holds the store's lock.
func (f *Fabric) lookup(id cloud.ListenerID, now time.Time, withBackends bool) (s settings, backends []backend, ok bool) {
	if id.ID == "" {
		return f.lookupCLB(id, now, withBackends)
	}
	return f.lookupNLB(id, now, withBackends)
}

// has finds an address among those of a load balancer.
func (lb loadBalancer) has(host netip.Addr) (VIP, bool) {
	i := slices.IndexFunc(lb.vips, func(v VIP) bool { return v.Address == host.String() })
	if i < 0 {
		return VIP{}, false
	}
	return lb.vips[i], true
}

// behind finds the listener behind a VIP.
func (lb loadBalancer) behind(v VIP, port int, network string) (hop, string) {
	for _, e := range lb.entrances {
		if e.first <= port && port <= e.last && transport(e.listener.Protocol) == network {
			return hop{arrival: arrival{listener: e.listener, vip: v, port: port}, balanced: true}, ""
		}
	}
	return hop{}, "the load balancer " + lb.id + " has no running listener on " + network + "/" + strconv.Itoa(port)
}

// Protocols of listeners, in the spelling of cloud.ListenerID.
const (
	udp    = "udp"
	tcpSSL = "tcpssl"
)

// transport is the network that a listener's protocol travels on.
func transport(protocol string) string {
	if protocol == udp {
		return udp
	}
	return "tcp"
}
