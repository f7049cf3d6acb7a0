package groups

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Memory is what this process knows of the groups of Services, by their marks. All of it can be rebuilt from the Services and the cloud.
// The zero value is empty; several goroutines may use it.
type Memory struct {
	mu     sync.Mutex // guards the rest
	places map[types.UID]string
	// woke is why a Service has woken the others of its group the last time.
	woke map[types.UID]wakeUp
	// standings are those that the Services know of: the last pass over each acted on it, or is to.
	standings map[types.UID]placement
	// removed are the Services of which this process has removed everything from the cloud.
	removed map[types.UID]bool
	servers servers

	byMark map[string]sharing.State
}

// Of returns what is known of the group with the mark.
func (m *Memory) Of(mark string) sharing.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byMark[mark]
}

// Note changes what is known of the group with the mark.
func (m *Memory) Note(mark string, change func(*sharing.State)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byMark == nil {
		m.byMark = map[string]sharing.State{}
	}
	known := m.byMark[mark]
	change(&known)
	m.byMark[mark] = known
}

// Put notes which load balancer a Service is on.
func (m *Memory) Put(svc types.UID, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places == nil {
		m.places = map[types.UID]string{}
	}
	m.places[svc] = id
	delete(m.removed, svc)
}

// In returns the load balancer of the group with the mark that a Service is on, empty while it has nothing on any of them. In the middle of
// a move it may have listeners on two: then the one counts that it shows. An answer may lack its listeners: then shown counts, too, the id
// of the load balancer that the Service shows, empty for none.
func (m *Memory) In(mark string, svc types.UID, name types.NamespacedName, shown string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byMark[mark]
	ids := []string{m.places[svc]}
	if listed := known.On[name]; len(listed[shown]) == 0 {
		ids = append(ids, slices.Sorted(maps.Keys(listed))...)
	}
	for _, id := range append(ids, shown) {
		if id != "" && known.Has(id) {
			return id
		}
	}
	return ""
}

// At returns the load balancer that a Service was put on, and false where this process knows of none.
func (m *Memory) At(svc types.UID) (id string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok = m.places[svc]
	return id, ok
}

// Removed notes that nothing of a Service is left in the cloud. The cache may show the Service with its finalizer for a while: of the last
// two Services of a group that go at once, each would leave the load balancer to the other one, and nobody would delete it.
func (m *Memory) Removed(svc types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.removed == nil {
		m.removed = map[types.UID]bool{}
	}
	m.removed[svc] = true
	delete(m.places, svc) // or it would count as one that uses the load balancer once it asks for another one
}

func (m *Memory) isRemoved(svc types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removed[svc]
}

// Forget drops where a Service is.
func (m *Memory) Forget(svc types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.places, svc)
	delete(m.woke, svc)
	delete(m.standings, svc)
	delete(m.removed, svc)
}
