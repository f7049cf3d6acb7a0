package fabric

import (
	"net/netip"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// clb is a CLB: it answers on its own address and on the elastic ones that are bound to it.
func (f *Fabric) clb(lb *cloud.LoadBalancer, now time.Time) loadBalancer {
	v := loadBalancer{id: lb.ID, vpcID: lb.VPCID, vips: f.vipsOf(lb, now)}
	for _, l := range lb.SortedListeners() {
		if carries(lb, l, now) {
			v.entrances = append(v.entrances, entrance{lb.ListenerID(l.ListenerKey), l.Port, l.Port})
		}
	}
	return v
}

// vipsOf are the addresses of a CLB: its own first, then the elastic ones that are bound to it.
func (f *Fabric) vipsOf(lb *cloud.LoadBalancer, now time.Time) []VIP {
	vips := []VIP{{Address: lb.Address, Internet: lb.AddressType == "internet"}}
	for e := range f.store.EIPs.All() {
		if e.Holder(now) == lb.ID {
			vips = append(vips, VIP{Address: e.Address, Internet: true})
		}
	}
	return vips
}

// carries reports whether a listener of a CLB takes connections now.
func carries(lb *cloud.LoadBalancer, l *cloud.Listener, now time.Time) bool {
	return lb.Status == cloud.Active && l.Phase.At(now) == cloud.ListenerRunning
}

func (f *Fabric) lookupCLB(id cloud.ListenerID, now time.Time, withBackends bool) (s settings, backends []backend, ok bool) {
	lb, ok := f.store.LoadBalancers.Get(id.LoadBalancerID)
	if !ok {
		return s, nil, false
	}
	l, ok := lb.Listeners[id.ListenerKey]
	if !ok || !carries(lb, l, now) {
		return s, nil, false
	}
	if withBackends {
		backends = f.backendsOf(lb, l, now)
	}
	return f.settingsOf(lb, l, now), backends, true
}

// settingsOf reads the attributes of a listener of a CLB.
func (f *Fabric) settingsOf(lb *cloud.LoadBalancer, l *cloud.Listener, now time.Time) settings {
	a := attributes(l.Attributes)
	s := settings{
		key: lb.ListenerID(l.ListenerKey), vpcID: lb.VPCID, vips: f.vipsOf(lb, now), scheduler: a["Scheduler"],
		persistence: a.seconds("PersistenceTimeout"), idle: a.seconds("EstablishedTimeout"), preserveClient: true,
		proxy: proxySettings{on: a.on("ProxyProtocolV2Enabled")}, check: checkOf(l.Protocol, a), web: webSettingsOf(a),
	}
	switch {
	case l.Protocol == udp:
		// UDP has no connection to protect: its sessions end at once, and the next datagram goes to a backend server that serves.
		s.drains = true
	case a.on("ConnectionDrain"):
		s.drain = a.seconds("ConnectionDrainTimeout")
		s.drains = s.drain > 0
	}
	if a.on("AclStatus") {
		s.access.kind = a["AclType"]
		for id := range strings.SplitSeq(a["AclId"], ",") {
			s.access.prefixes = append(s.access.prefixes, f.blocksOf(id)...)
		}
		s.access.closed = s.access.kind == "white" && len(s.access.prefixes) == 0 && !f.holds("network.acl-empty")
	}
	s.web.sticky.dotted = s.web.sticky.mode != "" && !f.holds("network.cookie-values")
	return s
}

// blocksOf are the address blocks of an access control list.
func (f *Fabric) blocksOf(id string) []netip.Prefix {
	var blocks []netip.Prefix
	if acl, ok := f.store.ACLs.Get(id); ok {
		for _, e := range acl.Entries {
			if p, err := netip.ParsePrefix(e.CIDR); err == nil {
				blocks = append(blocks, p)
			}
		}
	}
	return blocks
}

// backendsOf are all backend servers of a listener's vServer group, resolved. The caller holds the store's lock.
func (f *Fabric) backendsOf(lb *cloud.LoadBalancer, l *cloud.Listener, now time.Time) []backend {
	g, ok := f.store.ServerGroups.Get(l.ServerGroupID)
	if !ok {
		return nil
	}
	backends := make([]backend, 0, len(g.Backends))
	for _, b := range g.Backends {
		backends = append(backends, f.backend(target{b.BackendID(), b.Type, b.Weight, ""}, lb.VPCID, now))
	}
	return backends
}
