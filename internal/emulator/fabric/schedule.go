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

// take chooses a backend server for a connection of source and counts it as open until release. members is not empty; preferred is
// the backend server that a cookie names, the zero value for none.
func (b *balancer) take(s settings, members []member, source netip.AddrPort, preferred cloud.BackendID, now time.Time) member {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := find(members, preferred)
	if st := b.sticks[source.Addr()]; !ok && s.persistence > 0 && now.Before(st.until) {
		m, ok = find(members, st.backend)
	}
	if !ok {
		m = b.scheduleLocked(s, members, source)
	}
	if s.persistence > 0 {
		b.stickLocked(source.Addr(), stick{m.backend, now.Add(s.persistence)}, now)
	}
	b.open[m.backend]++
	return m
}

// release ends a connection that take counted.
func (b *balancer) release(m member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[m.backend]--; b.open[m.backend] <= 0 {
		delete(b.open, m.backend)
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

func find(members []member, wanted cloud.BackendID) (member, bool) {
	for _, m := range members {
		if m.backend == wanted {
			return m, true
		}
	}
	return member{}, false
}

func (b *balancer) scheduleLocked(s settings, members []member, source netip.AddrPort) member {
	switch s.scheduler {
	case "rr":
		return b.nextLocked(members, func(member) int { return 1 })
	case "wlc":
		return b.nextLocked(b.leastLocked(members), weightOf)
	case "sch":
		return hashed(members, source.Addr().AsSlice())
	case "tch", "qch":
		// The QUIC connection id that qch hashes is not looked into: the four parts of the address stand for it (assumed).
		return hashed(members, binary.BigEndian.AppendUint16(source.Addr().AsSlice(), source.Port()))
	default:
		return b.nextLocked(members, weightOf)
	}
}

func weightOf(m member) int { return m.weight }

// nextLocked chooses by smooth weighted round robin: everyone's turn grows by its weight, the largest goes and pays the
// total. That spreads the heavy ones instead of serving them in a row.
func (b *balancer) nextLocked(members []member, weight func(member) int) member {
	total, best := 0, 0
	fresh := make(map[cloud.BackendID]int, len(members))
	for i, m := range members {
		total += weight(m)
		fresh[m.backend] = b.turns[m.backend] + weight(m)
		if fresh[m.backend] > fresh[members[best].backend] {
			best = i
		}
	}
	fresh[members[best].backend] -= total
	b.turns = fresh
	return members[best]
}

// leastLocked are the backend servers with the fewest open connections for their weight, the new one counted.
func (b *balancer) leastLocked(members []member) []member {
	var least []member
	load := math.Inf(1)
	for _, m := range members {
		own := float64(b.open[m.backend]+1) / float64(m.weight)
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
func hashed(members []member, key []byte) member {
	best, score := members[0], math.Inf(-1)
	for _, m := range members {
		h := fnv.New64a()
		_, _ = h.Write(key) // a hash never fails
		_, _ = h.Write([]byte(m.backend.String()))
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
