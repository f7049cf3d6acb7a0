package service

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// starvesWait is how long a Service without any node waits for those that have more nodes than they need, until others give up one for it
	// that have several.
	starvesWait = 30 * time.Second
	// starvesMost is the same at most, after the cloud has refused what others gave up: whatever its reason is, they must not give up one
	// after the other.
	starvesMost = time.Hour
	// fedFor is how long a Service has to have chosen a node until the cloud has certainly not refused it. A refused call is made again within
	// minutes.
	fedFor = 10 * time.Minute
)

// hunger is that of a Service that has no node, and lacks one. Its zero value is none.
type hunger struct {
	since time.Time
	// wait is until how long afterwards nobody gives up a node for it. fedAt is when it has chosen one, zero for not.
	wait  time.Duration
	fedAt time.Time
}

// next returns the hunger of a Service that has chosen, and starves or not.
func (h hunger) next(starves bool, now time.Time) hunger {
	fed := !h.fedAt.IsZero()
	switch {
	case fed && now.Sub(h.fedAt) >= fedFor:
		return hunger{}.next(starves, now)
	case h.since.IsZero() && !starves, fed && !starves:
		return h
	case !starves:
		h.fedAt = now
		return h
	case h.since.IsZero():
		return hunger{since: now, wait: starvesWait}
	case fed: // in vain
		return hunger{since: now, wait: min(2*h.wait, starvesMost)}
	}
	return h
}

// long reports whether the hunger has lasted.
func (h hunger) long(now time.Time) bool {
	return !h.since.IsZero() && h.fedAt.IsZero() && now.Sub(h.since) >= h.wait
}

// starvesLong notes whether a Service starves, and reports whether others are to give up a node for it that need all of theirs.
func (c *crowd) starvesLong(svc types.UID, starves bool) bool {
	now := time.Now()
	h := c.hungers[svc].next(starves, now)
	if h == (hunger{}) {
		delete(c.hungers, svc)
		return false
	}
	c.hungers[svc] = h
	return h.long(now)
}
