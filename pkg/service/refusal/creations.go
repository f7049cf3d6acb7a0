package refusal

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// creationPause is how long no load balancer is asked for after the account's quota refused one. Somebody may raise the quota, or delete a
	// load balancer by hand: nothing shows that but another attempt.
	creationPause = waits.NoLoadBalancer
	// turn is how long a Service has to begin its attempt, and again to end it. Then another one follows: its pass may fail before, or never
	// end.
	turn = time.Minute
)

// Creations has the Services of a product take turns with the creation of load balancers while the account has as many as it may have: one
// of them tries, at intervals and when there may be room, and the others wait for it without a call. A success has the next one try at
// once. The last one that waits keeps to the intervals as well: neither its endpoints nor an edit make room in the account. An edit after
// which it needs no load balancer takes it out of the line. The zero value lets every Service try; several goroutines may use it.
type Creations struct {
	// Wake has a Service reconciled at once, and a pass over it that waits for the rate limit made anew. It is nil where nobody makes passes:
	// then the turn is whose pass comes first.
	Wake func(types.NamespacedName)

	mu sync.Mutex // guards the rest
	// refused is the last refusal, nil while no Service waits, and limit the quota that was known then.
	refused error
	limit   int
	// line are the Services that wait, the next one first.
	line []Creator
	// next is when the first of them may try.
	next time.Time
	// holder is the one whose turn it is, until its time is over; tries says that it has begun.
	holder types.UID
	until  time.Time
	tries  bool
	// underWay are attempts that began while no Service waited.
	underWay map[types.UID]types.NamespacedName
	timer    *time.Timer
	// deletions counts the load balancers that were deleted.
	deletions int
}

// Creator is a Service that needs a load balancer.
type Creator struct {
	UID  types.UID
	Name types.NamespacedName
}

// heldError is why a Service waits for its turn.
type heldError struct{ err error }

func (h *heldError) Error() string {
	return h.err.Error() + "; while this lasts, one Service at a time tries again"
}

func (h *heldError) Unwrap() error { return h.err }

// IsHeld reports whether no call was made because another Service of those that wait for a load balancer has its turn.
func IsHeld(err error) bool {
	_, ok := errors.AsType[*heldError](err)
	return ok
}

// Create makes the call that creates a load balancer, if it is the Service's turn. Otherwise it returns the last refusal; see [IsHeld].
// limit is how many load balancers the account may have, as far as that is known.
func (c *Creations) Create(svc Creator, limit int, create func() error) error {
	deletions, err := c.beginAttempt(svc, limit)
	if err != nil {
		return err
	}
	err = create()
	c.endAttempt(svc, limit, deletions, err)
	return err
}

// beginAttempt returns how many load balancers were deleted before, and no error if the Service may try now.
func (c *Creations) beginAttempt(svc Creator, limit int) (deletions int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		if c.underWay == nil {
			c.underWay = map[types.UID]types.NamespacedName{}
		}
		c.underWay[svc.UID] = svc.Name
		return c.deletions, nil
	}
	if c.indexLocked(svc.UID) < 0 {
		c.line = append(c.line, svc)
	}
	now := time.Now()
	if limit > c.limit {
		c.limit, c.next = limit, now
	}
	if (c.Wake == nil || c.line[0].UID == svc.UID) && c.freeLocked(now) { // its own pass has come before somebody wakes it
		c.holder, c.tries = svc.UID, false
	} else {
		c.callLocked(now)
	}
	if c.holder != svc.UID {
		return 0, &heldError{c.refused}
	}
	if !c.tries {
		c.tries, c.until = true, now.Add(turn)
		c.scheduleLocked(now)
	}
	return c.deletions, nil
}

// endAttempt notes how an attempt ended. A refusal proves nothing about room that a deletion made meanwhile.
func (c *Creations) endAttempt(svc Creator, limit, deletions int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, held := time.Now(), c.holder == svc.UID
	delete(c.underWay, svc.UID)
	switch {
	case err == nil:
		c.leaveLocked(svc.UID)
		if held {
			c.next = now
		}
	case OfQuota(err):
		c.leaveLocked(svc.UID)
		c.line = append(c.line, svc)
		if c.refused == nil {
			c.stopOthersLocked()
		}
		c.refused, c.limit, c.next = err, limit, now
		if deletions == c.deletions {
			c.next = now.Add(creationPause)
		}
	case OfCreation(err):
		c.leaveLocked(svc.UID) // what it lacks, others may have
	}
	c.callLocked(now)
}

// stopOthersLocked has the attempts that wait for the rate limit made anew, so that they wait for their turn.
func (c *Creations) stopOthersLocked() {
	if c.Wake == nil {
		return
	}
	for _, name := range c.underWay {
		go c.Wake(name)
	}
}

// Leave notes that a Service needs no load balancer, or none any more.
func (c *Creations) Leave(svc types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexLocked(svc) >= 0 {
		c.leaveLocked(svc)
		c.callLocked(time.Now())
	}
}

// Freed notes that a load balancer was deleted.
func (c *Creations) Freed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletions++
	if c.refused != nil {
		c.next = time.Now()
		c.callLocked(c.next)
	}
}

func (c *Creations) indexLocked(svc types.UID) int {
	return slices.IndexFunc(c.line, func(w Creator) bool { return w.UID == svc })
}

// leaveLocked takes a Service out of the line, and its turn from it.
func (c *Creations) leaveLocked(svc types.UID) {
	c.line = slices.DeleteFunc(c.line, func(w Creator) bool { return w.UID == svc })
	if c.holder == svc {
		c.holder = ""
	}
}

// freeLocked reports whether a Service may begin its turn.
func (c *Creations) freeLocked(now time.Time) bool {
	return !now.Before(c.next) && (c.holder == "" || !now.Before(c.until))
}

// callLocked gives the turn to the first in the line once it is time. One whose turn has lapsed is no longer in the line; it comes back
// with its next pass.
func (c *Creations) callLocked(now time.Time) {
	if c.holder != "" && !now.Before(c.until) {
		c.leaveLocked(c.holder)
	}
	if len(c.line) == 0 {
		c.refused, c.holder = nil, ""
	}
	if c.refused != nil && c.Wake != nil && c.freeLocked(now) {
		first := c.line[0]
		c.holder, c.until, c.tries = first.UID, now.Add(turn), false
		go c.Wake(first.Name) // it may be called from within a pass over another Service
	}
	c.scheduleLocked(now)
}

// scheduleLocked sets the timer for when the turn lapses, or the next one begins.
func (c *Creations) scheduleLocked(now time.Time) {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if c.refused == nil || c.Wake == nil {
		return
	}
	due := c.next
	if c.holder != "" {
		due = c.until
	}
	c.timer = time.AfterFunc(due.Sub(now), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.callLocked(time.Now())
	})
}

// OfQuota reports whether the cloud refused a load balancer because the account has as many as it may have.
func OfQuota(err error) bool { return alicloud.IsQuota(err) && !alicloud.IsVSwitchFull(err) }
