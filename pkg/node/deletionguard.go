package node

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/absence"
)

// deletionGuard counts how often instances were missing and how many Nodes may be deleted. It knows neither the cloud nor
// the objects, only UIDs.
type deletionGuard struct {
	opts GuardOptions

	mu    sync.Mutex // guards the maps
	rows  map[types.UID]missingNode
	slots map[types.UID]slot
}

// missingNode is a Node whose instance answers lack.
type missingNode struct {
	absence.Row
	state string // why the Node is kept, as it was last logged
}

// slot is one of the deletions that an interval allows.
type slot struct {
	until time.Time // when it is free for another node
	next  time.Time // when its own node may be confirmed again
}

func newDeletionGuard(opts GuardOptions) *deletionGuard {
	return &deletionGuard{opts: opts, rows: map[types.UID]missingNode{}, slots: map[types.UID]slot{}}
}

// present ends the row: whatever hid the instance is over. It returns whether there was one.
func (g *deletionGuard) present(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, missing := g.rows[uid]
	delete(g.rows, uid)
	return missing
}

// rule is what proves that an instance is gone that this process has seen, or has never seen.
func (g *deletionGuard) rule(seen bool) absence.Rule {
	rule := absence.Rule{Answers: g.opts.Confirmations, Over: g.opts.Over, Spacing: g.opts.spacing(), Pause: g.opts.maxPause}
	if !seen {
		rule.Over = max(rule.Over, g.opts.UnseenAge)
	}
	return rule
}

// missing adds an answer that lacks the instance, given at the time asked, to the node's row, and reports whether that is proof enough.
// seen is when an answer last had it, the zero time for never: when it was seen meanwhile, the row starts again.
func (g *deletionGuard) missing(uid types.UID, asked, seen time.Time) (proven bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	row, rule := g.rows[uid], g.rule(!seen.IsZero())
	if seen.After(row.First) {
		row.Row = absence.Row{}
	}
	row.Row = row.Lacking(asked, rule)
	g.rows[uid] = row
	maps.DeleteFunc(g.rows, func(_ types.UID, row missingNode) bool { return asked.Sub(row.Last) > forgetAfter }) // nobody asks any more
	return row.Proves(rule)
}

// state remembers why the Node is kept and reports whether that is new.
func (g *deletionGuard) state(uid types.UID, state string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	row := g.rows[uid]
	changed := row.state != state
	row.state = state
	if row.Count == 0 {
		row.Last = time.Now()
	}
	g.rows[uid] = row
	return changed
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
	maps.DeleteFunc(g.slots, func(_ types.UID, taken slot) bool { return now.After(taken.until) })
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
