package node

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// deletionGuard counts how often instances were missing and how many Nodes may be deleted. It knows neither the cloud nor
// the objects, only UIDs.
type deletionGuard struct {
	opts GuardOptions

	mu    sync.Mutex // guards the maps
	rows  map[types.UID]*absence
	slots map[types.UID]slot
}

// absence is a row of consecutive answers without the instance.
type absence struct {
	first, last time.Time
	count       int
	state       string // why the Node is kept, as it was last logged
}

// slot is one of the deletions that an interval allows.
type slot struct {
	until time.Time // when it is free for another node
	next  time.Time // when its own node may be confirmed again
}

func newDeletionGuard(opts GuardOptions) *deletionGuard {
	return &deletionGuard{opts: opts, rows: map[types.UID]*absence{}, slots: map[types.UID]slot{}}
}

// present ends the row: whatever hid the instance is over. It returns whether there was one.
func (g *deletionGuard) present(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, missing := g.rows[uid]
	delete(g.rows, uid)
	return missing
}

// missing adds an answer that lacks the instance, given at the time asked, to the node's row. seen is when an answer last
// had it, the zero time for never. Answers in quick succession count as one, because they may come from the same copy of
// the list; after a longer pause, or when the instance was seen meanwhile, the row starts again.
func (g *deletionGuard) missing(uid types.UID, asked, seen time.Time) (count int, over time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	row := g.row(uid)
	switch {
	case row.count == 0, seen.After(row.first), asked.Sub(row.last) > g.opts.maxPause:
		row.first, row.last, row.count = asked, asked, 1
	case asked.Sub(row.last) >= g.opts.spacing():
		row.last = asked
		row.count++
	}
	g.forget(asked)
	return row.count, asked.Sub(row.first)
}

// enough reports whether a row proves that an instance is gone that this process has seen, or has never seen.
func (g *deletionGuard) enough(count int, over time.Duration, seen bool) bool {
	least := g.opts.Over
	if !seen {
		least = max(least, g.opts.UnseenAge)
	}
	return count >= g.opts.Confirmations && over >= least
}

// state remembers why the Node is kept and reports whether that is new.
func (g *deletionGuard) state(uid types.UID, state string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	row := g.row(uid)
	changed := row.state != state
	row.state = state
	return changed
}

func (g *deletionGuard) row(uid types.UID) *absence {
	row := g.rows[uid]
	if row == nil {
		row = &absence{last: time.Now()}
		g.rows[uid] = row
	}
	return row
}

// Results of asking for a deletion.
type grant int

const (
	granted grant = iota
	capped        // the interval's deletions are used up
	notDue        // the node has one that was not confirmed or not carried out, and is not tried again yet
)

// grant takes one of the deletions that the interval allows a cluster of so many nodes. A node keeps its slot, so that a Node
// whose deletion failed is not counted twice.
func (g *deletionGuard) grant(uid types.UID, nodes int, now time.Time) grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	for other, taken := range g.slots {
		if now.After(taken.until) {
			delete(g.slots, other)
		}
	}
	taken, ok := g.slots[uid]
	switch {
	case ok && now.Before(taken.next):
		return notDue
	case !ok && len(g.slots) >= g.opts.limit(nodes):
		return capped
	case !ok:
		taken.until = now.Add(g.opts.Interval)
	}
	taken.next = now.Add(g.opts.spacing())
	g.slots[uid] = taken
	return granted
}

// deny keeps the slot of a node whose deletion was not confirmed until the interval is over: that many calls to confirm, and
// no more, are made while something hides instances.
func (g *deletionGuard) deny(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.slots[uid]
	taken.next = taken.until
	g.slots[uid] = taken
}

// forget drops rows of nodes that nobody asks about any more.
func (g *deletionGuard) forget(now time.Time) {
	for uid, row := range g.rows {
		if now.Sub(row.last) > forgetAfter {
			delete(g.rows, uid)
		}
	}
}
