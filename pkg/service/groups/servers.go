package groups

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// servers are how many backend servers each Service has on the load balancers of groups, as far as this process knows, by the ids of those.
type servers map[string]map[types.NamespacedName]holding

// holding is how many the Service with the UID has.
type holding struct {
	uid     types.UID
	servers int
}

// Hold notes how many backend servers a Service with listeners has on a load balancer of a group.
func (m *Memory) Hold(svc *corev1.Service, id string, now int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.servers == nil {
		m.servers = servers{}
	}
	if m.servers[id] == nil {
		m.servers[id] = map[types.NamespacedName]holding{}
	}
	m.servers[id][mark.ServiceName(svc)] = holding{svc.UID, now}
}

// Release notes that a Service has nothing any more at a place that it has left: on a load balancer, by its id, or on those of a group, by
// its mark. is the id of the load balancer where the Service is, empty for none.
func (m *Memory) Release(svc types.UID, place, is string) {
	state := m.Of(place)
	m.releaseServers(svc, func(id string) bool { return id != is && (id == place || state.Has(id)) })
}

// Forget drops what is known of a Service that is gone.
func (g *Groups[LB]) Forget(svc types.UID) {
	g.Memory.Forget(svc)
	g.releaseServers(svc, func(string) bool { return true })
}

// releaseServers drops what a Service has on some load balancers.
func (m *Memory) releaseServers(svc types.UID, on func(id string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, all := range m.servers {
		if on(id) {
			maps.DeleteFunc(all, func(_ types.NamespacedName, held holding) bool { return held.uid == svc })
		}
	}
}

// forgetBalancer drops what is known of a load balancer that is gone.
func (m *Memory) forgetBalancer(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, id)
}

// Servers returns how many backend servers all Services have on a load balancer of a group. All says that each of those is known that has
// listeners there.
func (m *Memory) Servers(group mark.Group, id string) (n int, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, held := range m.servers[id] {
		n += held.servers
	}
	for name, listed := range m.byMark[group.Mark()].On {
		if _, known := m.servers[id][name]; !known && len(listed[id]) > 0 {
			return n, false
		}
	}
	return n, true
}

// ServersOfOthers returns how many backend servers the other Services have on a load balancer of a group.
func (m *Memory) ServersOfOthers(id string, svc *corev1.Service) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for name, held := range m.servers[id] {
		if name != mark.ServiceName(svc) {
			n += held.servers
		}
	}
	return n
}
