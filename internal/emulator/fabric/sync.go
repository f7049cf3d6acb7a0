package fabric

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Sync brings sockets and connections in line with the store: sockets for the listeners that carry
// traffic, none for others, and no connection to a machine that does not run.
func (f *Fabric) Sync() {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.dropDead()
	f.drain()
	wanted := f.wanted()
	for _, key := range f.opened() {
		front := f.find(key)
		if _, goesOn := wanted[key]; !goesOn {
			f.put(key, nil)
			f.balancers.forget(key)
			// The listener is gone whatever its socket says.
			_ = front.close()
		}
	}
	if !f.listen || f.ctx.Err() != nil {
		return
	}
	for key, x := range wanted {
		front := f.find(key)
		if front == nil {
			front = f.open(key)
			f.put(key, front)
		}
		f.extend(front, x)
	}
}

func (f *Fabric) find(key cloud.ListenerID) *frontend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.frontends[key]
}

// put notes that a listener has a frontend, or with nil that it has none. The caller holds f.syncing.
func (f *Fabric) put(key cloud.ListenerID, front *frontend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if front == nil {
		delete(f.frontends, key)
		return
	}
	f.frontends[key] = front
}

// extent is where a listener accepts: on the ports from first to last of each VIP.
type extent struct {
	vips        []VIP
	first, last int
}

// wanted are the listeners that should have a frontend. Without sockets only what somebody dialed has one.
func (f *Fabric) wanted() map[cloud.ListenerID]extent {
	wanted := map[cloud.ListenerID]extent{}
	if !f.listen {
		for _, key := range f.opened() {
			if _, ok := f.read(key); ok {
				wanted[key] = extent{}
			}
		}
		return wanted
	}
	f.store.View(func() {
		for lb := range f.loadBalancers(f.store.Now()) {
			for _, e := range lb.entrances {
				wanted[e.listener] = extent{lb.vips, e.first, e.last}
			}
		}
	})
	return wanted
}

func (f *Fabric) opened() []cloud.ListenerID {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := make([]cloud.ListenerID, 0, len(f.frontends))
	for key := range f.frontends {
		keys = append(keys, key)
	}
	return keys
}

// dropDead breaks the connections to machines that were released or stopped.
func (f *Fabric) dropDead() {
	connected := f.conns.machines()
	if len(connected) == 0 {
		return
	}
	dead := map[string]bool{}
	f.store.View(func() {
		for id := range connected {
			if _, reason := f.machine(id, f.store.Now()); reason != "" {
				dead[id] = true
			}
		}
	})
	if len(dead) > 0 {
		f.conns.closeWhere(func(id string) bool { return dead[id] })
	}
}

// drain begins the end of connections to backend servers that left their group or failed their checks.
func (f *Fabric) drain() {
	for key := range f.conns.listeners() {
		s, backends, ok := f.readListener(key)
		if !ok {
			continue
		}
		serving, members := map[cloud.BackendID]bool{}, map[cloud.BackendID]bool{}
		for _, m := range backends {
			members[m.id] = true
			serving[m.id] = f.health.status(probeKey{key, m.id}) != Abnormal || !f.endsWhereFailed(s)
		}
		for id := range f.conns.backends(key) {
			if !members[id] {
				serving[id] = !f.endsWhereLeft(s)
			}
		}
		f.conns.leave(key, serving, s.drain)
	}
}

// endsWhereFailed reports whether connections to a backend server end that fails its checks: where the listener drains.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/nlb-health-check-overview
func (f *Fabric) endsWhereFailed(s settings) bool {
	return s.drains && (!s.isNLB() || f.holds("network.nlb-unhealthy-drain"))
}

// endsWhereLeft reports whether connections to a backend server end that left its group: after the time of the drain, at once without one.
func (f *Fabric) endsWhereLeft(s settings) bool {
	switch {
	case s.key.Protocol == udp && s.isNLB():
		return f.holds("network.nlb-udp-sessions")
	case s.key.Protocol == udp:
		return f.holds("network.udp-sessions")
	case !s.drains:
		return !f.holds("network.left-without-drain")
	}
	return true
}
