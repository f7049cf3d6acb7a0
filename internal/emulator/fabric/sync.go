package fabric

import "time"

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
		if vips := wanted[key]; len(vips) == 0 || vips[0] != front.vip {
			f.put(key, nil)
			f.balancers.forget(key)
			// The listener is gone whatever its socket says.
			_ = front.close()
		}
	}
	if !f.listen || f.ctx.Err() != nil {
		return
	}
	for key, vips := range wanted {
		front := f.find(key)
		if front == nil {
			var err error
			if front, err = f.open(key, vips[0]); err != nil {
				continue
			}
			f.put(key, front)
		}
		front.follow(f, vips[1:])
	}
}

func (f *Fabric) find(key socketKey) *frontend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.frontends[key]
}

// put notes that a listener has a frontend, or with nil that it has none. The caller holds f.syncing.
func (f *Fabric) put(key socketKey, front *frontend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if front == nil {
		delete(f.frontends, key)
		return
	}
	f.frontends[key] = front
}

// wanted are the listeners that should have a frontend, with their VIPs. Without sockets only what somebody dialled has
// one.
func (f *Fabric) wanted() map[socketKey][]VIP {
	wanted := map[socketKey][]VIP{}
	if !f.listen {
		for _, key := range f.opened() {
			if s, ok := f.read(key); ok {
				wanted[key] = s.vips
			}
		}
		return wanted
	}
	f.store.View(func() {
		now := time.Now()
		for lb := range f.store.LoadBalancers.All() {
			vips := f.vipsOf(lb, now)
			for key, l := range lb.Listeners {
				if carries(lb, l, now) {
					wanted[socketKey{lb.ID, key}] = vips
				}
			}
		}
	})
	return wanted
}

func (f *Fabric) opened() []socketKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := make([]socketKey, 0, len(f.frontends))
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
			if _, reason := f.machine(id, time.Now()); reason != "" {
				dead[id] = true
			}
		}
	})
	if len(dead) > 0 {
		f.conns.closeWhere(func(id string) bool { return dead[id] })
	}
}

// drain begins the end of connections to backend servers that left their group or failed their checks, where the listener drains.
// Without it they go on until an end closes them (assumed). UDP has no connection to protect: its
// sessions end at once, and the next datagram goes to a backend server that serves.
func (f *Fabric) drain() {
	for key := range f.conns.listeners() {
		s, members, ok := f.readListener(key)
		if !ok || (s.drain == 0 && key.Protocol != "udp") {
			continue
		}
		serving := map[backend]bool{}
		for _, m := range members {
			serving[m.backend] = f.health.status(probeKey{key, m.backend}) != Abnormal
		}
		after := s.drain
		if key.Protocol == "udp" {
			after = 0
		}
		f.conns.leave(key, serving, after)
	}
}
