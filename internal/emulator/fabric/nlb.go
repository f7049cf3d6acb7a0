package fabric

import (
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// nlb is an NLB: it answers in each of its zones, on the private address there, on the public one of an internet NLB, and on the IPv6
// one of a dual-stack NLB.
func (f *Fabric) nlb(lb *cloud.NLB, now time.Time) loadBalancer {
	v := loadBalancer{id: lb.ID, vpcID: lb.VPCID, vips: vipsOfNLB(lb)}
	for _, l := range f.store.NLBListenersOf(lb.ID, now) {
		if f.carriesNLB(lb, l, now) {
			first, last := l.Ports()
			v.entrances = append(v.entrances, entrance{l.ListenerID(), first, last})
		}
	}
	return v
}

func vipsOfNLB(lb *cloud.NLB) []VIP {
	vips := make([]VIP, 0, len(lb.Zones))
	for _, z := range lb.Zones {
		vips = append(vips, VIP{Address: z.PrivateIP, Zone: z.ZoneID})
		if z.PublicIP != "" {
			vips = append(vips, VIP{Address: z.PublicIP, Internet: true, Zone: z.ZoneID})
		}
		if z.IPv6 != "" {
			vips = append(vips, VIP{Address: z.IPv6, Internet: lb.IPv6AddressType == "Internet", Zone: z.ZoneID})
		}
	}
	return vips
}

// answers reports whether an NLB carries traffic: while it is being changed, too.
func answers(lb *cloud.NLB, now time.Time) bool {
	status := lb.Phase.At(now)
	return status == cloud.NLBActive || status == cloud.NLBConfiguring
}

// carriesNLB reports whether a listener of an NLB takes connections now. A change does not interrupt a running one.
func (f *Fabric) carriesNLB(lb *cloud.NLB, l *cloud.NLBListener, now time.Time) bool {
	status := l.Phase.At(now)
	running := status == cloud.Running || status == cloud.NLBConfiguring && l.Phase.End() != cloud.Stopped
	if status == cloud.NLBConfiguring || lb.Phase.At(now) == cloud.NLBConfiguring {
		running = running && f.holds("network.nlb-during-jobs")
	}
	return running && answers(lb, now)
}

func (f *Fabric) lookupNLB(id cloud.ListenerID, now time.Time, withBackends bool) (s settings, backends []backend, ok bool) {
	l, ok := f.store.NLBListeners.Get(id.ID)
	if !ok {
		return s, nil, false
	}
	lb, ok := f.store.NLBs.Get(l.LoadBalancerID)
	if !ok || !f.carriesNLB(lb, l, now) {
		return s, nil, false
	}
	g, ok := f.store.NLBGroups.Get(l.GroupID)
	if !ok {
		// A group in use cannot be deleted; without one there is simply nobody to send to.
		g = &cloud.NLBGroup{}
	}
	if withBackends {
		backends = f.backendsOfNLB(lb, g, now)
	}
	return f.settingsOfNLB(lb, l, g), backends, true
}

// settingsOfNLB reads a listener of an NLB with what its group says.
func (f *Fabric) settingsOfNLB(lb *cloud.NLB, l *cloud.NLBListener, g *cloud.NLBGroup) settings {
	s := settings{
		key: l.ListenerID(), vpcID: lb.VPCID, vips: vipsOfNLB(lb), scheduler: strings.ToLower(g.Scheduler),
		idle: time.Duration(l.IdleTimeout) * time.Second, preserveClient: g.PreserveClientIP, perZone: !lb.CrossZone,
		security: f.securityOf(lb.SecurityGroups), check: checkOfNLB(g), proxy: proxySettingsOf(l),
	}
	s.proxy.vpcID = s.proxy.vpcID && f.holds("network.nlb-proxy-vpc")
	s.acceptsFirst = len(s.security) > 0 && !f.holds("network.nlb-security-order")
	switch {
	case g.ConnectionDrain:
		s.drains, s.drain = true, time.Duration(g.ConnectionDrainTimeout)*time.Second
	case s.key.Protocol == udp:
		s.drains = true
	}
	return s
}

// checkOfNLB reads how a group checks its backend servers.
func checkOfNLB(g *cloud.NLBGroup) check {
	h := g.HealthCheck
	if !h.Enabled {
		return check{}
	}
	return check{
		kind: strings.ToLower(h.Type), interval: time.Duration(h.Interval) * time.Second, timeout: time.Duration(h.ConnectTimeout) * time.Second,
		healthy: h.Healthy, unhealthy: h.Unhealthy, port: h.ConnectPort, method: cloud.OrDefault(h.Method, "GET"),
		uri:    cloud.OrDefault(h.URL, "/"),
		domain: h.Domain, codes: cloud.OrDefault(strings.Join(h.Codes, ","), defaultCodes), request: h.Request, expectation: h.Expect,
	}
}

// backendsOfNLB are the backend servers of a group that have joined and are not leaving, resolved.
func (f *Fabric) backendsOfNLB(lb *cloud.NLB, g *cloud.NLBGroup, now time.Time) []backend {
	backends := make([]backend, 0, len(g.Servers))
	for _, v := range g.LiveServers(now) {
		if status := v.Phase.At(now); status != cloud.Available && status != cloud.NLBConfiguring {
			continue
		}
		backends = append(backends, f.backend(target{v.BackendID(), strings.ToLower(v.Type), v.Weight, v.ZoneID}, lb.VPCID, now))
	}
	return backends
}
