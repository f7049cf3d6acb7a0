package alicloud

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// reservation holds places for calls that are to follow one another without a wait for the rate limit.
type reservation struct {
	// taken is the window in which the place of an action was taken, guarded by the limiter's mutex.
	taken map[string]time.Time
}

type reservationKey struct{}

// reserveAttempts is how often places are taken anew that have passed while others were waited for.
const reserveAttempts = 3

// ReserveReplacement waits until the calls that delete one listener, create another one in its place and start it can follow one
// another without a wait: nothing serves the port between them. Calls with the returned context use the places. A place that is not
// used within its window is lost.
func (c *Client) ReserveReplacement(ctx context.Context, old, wanted ListenerKey) (context.Context, error) {
	reserved, err := c.limiter.reserve(ctx, "DeleteLoadBalancerListener", "CreateLoadBalancer"+strings.ToUpper(wanted.Protocol)+"Listener",
		"StartLoadBalancerListener")
	if err != nil {
		return ctx, fmt.Errorf("replace listener %s by %s: wait for the rate limit: %w", old, wanted, err)
	}
	return reserved, nil
}

// reserve takes a place of each action.
func (l *limiter) reserve(ctx context.Context, actions ...string) (context.Context, error) {
	held := &reservation{taken: map[string]time.Time{}}
	for range reserveAttempts {
		missing := l.notHeld(held, actions)
		if len(missing) == 0 {
			break
		}
		for _, action := range missing {
			if err := l.wait(ctx, action); err != nil {
				return ctx, err
			}
			l.hold(held, action)
		}
	}
	return context.WithValue(ctx, reservationKey{}, held), nil
}

func (l *limiter) hold(held *reservation, action string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held.taken[action] = time.Now().Truncate(l.queueLocked(action).quota.window)
}

// notHeld returns the actions whose places count no more, because their window has passed or the cloud has closed the action.
func (l *limiter) notHeld(held *reservation, actions []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing []string
	for _, action := range actions {
		if !l.heldLocked(held, action) {
			missing = append(missing, action)
		}
	}
	return missing
}

func (l *limiter) heldLocked(held *reservation, action string) bool {
	now, q := time.Now(), l.queueLocked(action)
	taken, ok := held.taken[action]
	return ok && taken.Equal(now.Truncate(q.quota.window)) && !q.closed(now)
}

// useReserved reports whether a call goes in a place that was reserved for it.
func (l *limiter) useReserved(ctx context.Context, action string) bool {
	held, ok := ctx.Value(reservationKey{}).(*reservation)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ok = l.heldLocked(held, action)
	delete(held.taken, action)
	return ok
}
