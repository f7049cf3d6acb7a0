package groups

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// servers are what the Services have on the load balancers of groups, as far as this process knows, and who waits for room there.
type servers struct {
	// byID are those of each Service by load balancers.
	byID map[string]map[types.NamespacedName]holding
	// freed is when a Service has last given up some of a load balancer.
	freed map[string]time.Time
	// waiting are the Services that have fewer than they may have, because others have not given up theirs yet.
	waiting map[types.UID]waiting
}

// Held is what a Service has on a load balancer: backend servers in all its groups together, and listeners.
type Held struct{ Servers, Listeners int }

// holding is what the Service with the UID has.
type holding struct {
	Held

	uid types.UID
}

// waiting is a Service that waits for room on a load balancer, and how many backend servers the port has that has fewest.
type waiting struct {
	name types.NamespacedName
	id   string
	has  int
}

// Hold notes what a Service has on a load balancer of a group. Where it has fewer backend servers than before, those that wait for room
// there get a pass.
func (g *Groups[LB]) Hold(svc *corev1.Service, id string, now Held) {
	if g.hold(svc, id, now) {
		g.wakeWaiting(id, svc.UID)
	}
}

// Release notes that a Service has nothing any more at a place that it has left: on a load balancer, by its id, or on those of a group, by
// its mark. is the id of the load balancer where the Service is, empty for none.
func (g *Groups[LB]) Release(svc types.UID, place, is string) {
	state := g.Of(place)
	for _, id := range g.releaseServers(svc, func(id string) bool { return id != is && (id == place || state.Has(id)) }) {
		g.wakeWaiting(id, svc)
	}
}

// Forget drops what is known of a Service that is gone.
func (g *Groups[LB]) Forget(svc types.UID) {
	g.Memory.Forget(svc)
	for _, id := range g.releaseServers(svc, func(string) bool { return true }) {
		g.wakeWaiting(id, svc)
	}
}

func (g *Groups[LB]) wakeWaiting(id string, except types.UID) {
	if g.Wake == nil {
		return
	}
	for _, name := range g.waitingOn(id, except) {
		g.Wake(name)
	}
}

// releaseServers drops what a Service has on some load balancers, and returns those where it had anything.
func (m *Memory) releaseServers(svc types.UID, on func(id string) bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var released []string
	for id, all := range m.servers.byID {
		if !on(id) {
			continue
		}
		before := len(all)
		maps.DeleteFunc(all, func(_ types.NamespacedName, held holding) bool { return held.uid == svc })
		if len(all) < before {
			m.servers.freed[id] = time.Now()
			released = append(released, id)
		}
	}
	return released
}

// hold reports whether the Service has fewer backend servers than before.
func (m *Memory) hold(svc *corev1.Service, id string, now Held) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := mark.ServiceName(svc)
	s := &m.servers
	if s.byID == nil {
		s.byID, s.freed = map[string]map[types.NamespacedName]holding{}, map[string]time.Time{}
	}
	if s.byID[id] == nil {
		s.byID[id] = map[types.NamespacedName]holding{}
	}
	fewer := now.Servers < s.byID[id][name].Servers
	if fewer {
		s.freed[id] = time.Now()
	}
	if s.byID[id][name] = (holding{now, svc.UID}); now == (Held{}) {
		delete(s.byID[id], name)
	}
	return fewer
}

// forgetBalancer drops what is known of a load balancer that is gone.
func (m *Memory) forgetBalancer(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers.byID, id)
	delete(m.servers.freed, id)
}

// Servers returns how many backend servers all Services have on a load balancer of a group. All says that each of those is known that has
// listeners there.
func (m *Memory) Servers(group mark.Group, id string) (n int, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range m.servers.byID[id] {
		n += held.Servers
	}
	for name, listed := range m.byMark[group.Mark()].On {
		if _, known := m.servers.byID[id][name]; !known && len(listed[id]) > 0 {
			return n, false
		}
	}
	return n, true
}

// FreedAt returns when a Service has last given up backend servers of a load balancer.
func (m *Memory) FreedAt(id string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.servers.freed[id]
}

// HasSurplus reports whether another Service than this one has more backend servers on a load balancer than its share for each of its
// listeners.
func (m *Memory) HasSurplus(id string, svc types.NamespacedName, share int) bool {
	return len(m.withSurplus(id, svc, share)) > 0
}

func (m *Memory) withSurplus(id string, except types.NamespacedName, share int) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []types.NamespacedName
	for name, held := range m.servers.byID[id] {
		if name != except && held.Servers > share*held.Listeners {
			names = append(names, name)
		}
	}
	return names
}

// Wait notes that a Service waits for room on a load balancer, and has passes made over those of the others there that have more of its
// backend servers than their share. has is how many backend servers the port has that has fewest.
func (g *Groups[LB]) Wait(svc *corev1.Service, id string, has, share int) {
	g.wait(svc, id, has)
	if g.Wake == nil || !g.isNews(svc.UID, "crowded", time.Now()) {
		return
	}
	for _, name := range g.withSurplus(id, mark.ServiceName(svc), share) {
		g.Wake(name)
	}
}

func (m *Memory) wait(svc *corev1.Service, id string, has int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.servers.waiting == nil {
		m.servers.waiting = map[types.UID]waiting{}
	}
	m.servers.waiting[svc.UID] = waiting{mark.ServiceName(svc), id, has}
}

// WaitNoMore notes that a Service has room for all its backend servers.
func (m *Memory) WaitNoMore(svc types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers.waiting, svc)
}

// IsNeeded reports whether another Service than this one waits for room on a load balancer, and has fewer backend servers for a port than
// its share.
func (m *Memory) IsNeeded(id string, svc types.UID, share int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, of := range m.servers.waiting {
		if uid != svc && of.id == id && of.has < share {
			return true
		}
	}
	return false
}

// waitingOn are the Services that wait for room on a load balancer, without one of them.
func (m *Memory) waitingOn(id string, except types.UID) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []types.NamespacedName
	for uid, of := range m.servers.waiting {
		if uid != except && of.id == id {
			names = append(names, of.name)
		}
	}
	return names
}
