package fabric

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// balancer holds what one listener remembers between connections.
type balancer struct {
	mu sync.Mutex
	// turns is the position of the weighted round robin by backend server; guarded by mu like everything below.
	turns map[cloud.BackendID]int
	// open counts connections (or HTTP requests) in progress by backend server.
	open map[cloud.BackendID]int
	// sticks are the backend servers of persistent sources.
	sticks map[netip.Addr]stick
}

// stick keeps a source with a backend server.
type stick struct {
	backend cloud.BackendID
	until   time.Time
}

func newBalancer() *balancer {
	return &balancer{turns: map[cloud.BackendID]int{}, open: map[cloud.BackendID]int{}, sticks: map[netip.Addr]stick{}}
}

// take chooses a backend server for a connection of source and counts it as open until release. backends is not empty; preferred is
// the backend server that a cookie names, the zero value for none.
func (b *balancer) take(s settings, backends []backend, source netip.AddrPort, preferred cloud.BackendID, now time.Time) backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := find(backends, preferred)
	if st := b.sticks[source.Addr()]; !ok && s.persistence > 0 && now.Before(st.until) {
		m, ok = find(backends, st.backend)
	}
	if !ok {
		m = b.scheduleLocked(s, backends, source)
	}
	if s.persistence > 0 {
		b.stickLocked(source.Addr(), stick{m.id, now.Add(s.persistence)}, now)
	}
	b.open[m.id]++
	return m
}

// release ends a connection that take counted.
func (b *balancer) release(m backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[m.id]--; b.open[m.id] <= 0 {
		delete(b.open, m.id)
	}
}

// sticksSwept is the size from which expired sources are dropped whenever one is added.
const sticksSwept = 1024

func (b *balancer) stickLocked(source netip.Addr, s stick, now time.Time) {
	if len(b.sticks) >= sticksSwept {
		for a, old := range b.sticks {
			if !now.Before(old.until) {
				delete(b.sticks, a)
			}
		}
	}
	b.sticks[source] = s
}

func find(backends []backend, wanted cloud.BackendID) (backend, bool) {
	for _, m := range backends {
		if m.id == wanted {
			return m, true
		}
	}
	return backend{}, false
}

func (b *balancer) scheduleLocked(s settings, backends []backend, source netip.AddrPort) backend {
	switch s.scheduler {
	case "rr":
		return b.nextLocked(backends, func(backend) int { return 1 })
	case "wlc":
		return b.nextLocked(b.leastLocked(backends), weightOf)
	case "sch":
		return hashed(backends, source.Addr().AsSlice())
	case "tch", "qch":
		// The QUIC connection id that qch hashes is not looked into: the four parts of the address stand for it (assumed).
		return hashed(backends, binary.BigEndian.AppendUint16(source.Addr().AsSlice(), source.Port()))
	default:
		return b.nextLocked(backends, weightOf)
	}
}

func weightOf(m backend) int { return m.weight }

// nextLocked chooses by smooth weighted round robin: everyone's turn grows by its weight, the largest goes and pays the
// total. That spreads the heavy ones instead of serving them in a row.
func (b *balancer) nextLocked(backends []backend, weight func(backend) int) backend {
	total, best := 0, 0
	fresh := make(map[cloud.BackendID]int, len(backends))
	for i, m := range backends {
		total += weight(m)
		fresh[m.id] = b.turns[m.id] + weight(m)
		if fresh[m.id] > fresh[backends[best].id] {
			best = i
		}
	}
	fresh[backends[best].id] -= total
	b.turns = fresh
	return backends[best]
}

// leastLocked are the backend servers with the fewest open connections for their weight, the new one counted.
func (b *balancer) leastLocked(backends []backend) []backend {
	var least []backend
	load := math.Inf(1)
	for _, m := range backends {
		own := float64(b.open[m.id]+1) / float64(m.weight)
		if own < load {
			least, load = nil, own
		}
		if own == load {
			least = append(least, m)
		}
	}
	return least
}

// hashed chooses by weighted rendezvous: the same key goes to the same backend server as long as that is there, and only the keys
// of a backend server that left move.
func hashed(backends []backend, key []byte) backend {
	best, score := backends[0], math.Inf(-1)
	for _, m := range backends {
		h := fnv.New64a()
		_, _ = h.Write(key) // a hash never fails
		_, _ = h.Write([]byte(m.id.String()))
		// FNV changes the low bits most; mixing spreads them before the value is taken as a fraction of 1.
		x := h.Sum64()
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		x ^= x >> 33
		fraction := (float64(x>>11) + 0.5) / (1 << 53)
		if own := -float64(m.weight) / math.Log(fraction); own > score {
			best, score = m, own
		}
	}
	return best
}

// turnsKey names a balancer: a listener, and the zone where each zone has its own.
type turnsKey struct {
	listener cloud.ListenerID
	zone     string
}

// balancers find the balancer of a listener. The zero value is ready.
type balancers struct {
	mu  sync.Mutex
	all map[turnsKey]*balancer // guarded by mu
}

func (b *balancers) of(key turnsKey) *balancer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[turnsKey]*balancer{}
	}
	if b.all[key] == nil {
		b.all[key] = newBalancer()
	}
	return b.all[key]
}

func (b *balancers) forget(listener cloud.ListenerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.all, func(key turnsKey, _ *balancer) bool { return key.listener == listener })
}
