package node

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// guard counts how often an instance was missing and how many nodes were reported as gone. It knows no cloud.
type guard struct {
	opts GuardOptions

	mu      sync.Mutex // guards the maps
	absent  map[types.UID]absence
	granted map[types.UID]time.Time
}

// absence is a row of answers without the instance.
type absence struct {
	first, last time.Time
	count       int
}

func newGuard(opts GuardOptions) *guard {
	return &guard{opts: opts, absent: map[types.UID]absence{}, granted: map[types.UID]time.Time{}}
}

// present ends the row: whatever hid the instance is over.
func (g *guard) present(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.absent, uid)
}

// missing adds an answer, given at the time asked, to the row of the node. It returns how many count by now and whether
// they are enough. Answers in quick succession count as one: they may come from the same copy of the list.
func (g *guard) missing(uid types.UID, asked time.Time) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	row, ok := g.absent[uid]
	spacing := g.opts.Over / time.Duration(2*g.opts.Confirmations)
	switch {
	case !ok:
		row = absence{first: asked, last: asked, count: 1}
	case asked.Sub(row.last) >= spacing:
		row.last = asked
		row.count++
	}
	g.absent[uid] = row
	g.forget(asked)
	return row.count, row.count >= g.opts.Confirmations && asked.Sub(row.first) >= g.opts.Over
}

// room reports whether the node may have one of the deletions that the interval allows a cluster of so many nodes. A node
// that has one keeps it, so that a Node whose deletion failed is not counted twice.
func (g *guard) room(uid types.UID, nodes int, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roomLocked(uid, nodes, now)
}

// grant takes a deletion if there is room.
func (g *guard) grant(uid types.UID, nodes int, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.roomLocked(uid, nodes, now) {
		return false
	}
	if _, ok := g.granted[uid]; !ok {
		g.granted[uid] = now
	}
	return true
}

func (g *guard) roomLocked(uid types.UID, nodes int, now time.Time) bool {
	for granted, at := range g.granted {
		if now.Sub(at) >= g.opts.Interval {
			delete(g.granted, granted)
		}
	}
	_, granted := g.granted[uid]
	return granted || len(g.granted) < max(g.opts.MaxDeletions, nodes*g.opts.MaxPercent/100)
}

// forget drops rows of nodes that nobody asks about any more.
func (g *guard) forget(now time.Time) {
	for uid, row := range g.absent {
		if now.Sub(row.last) > forgetAfter {
			delete(g.absent, uid)
		}
	}
}
