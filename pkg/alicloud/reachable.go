package alicloud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// unreachableAfter is how long nothing but failures makes the cloud count as unreachable. One call may take 20 s.
const unreachableAfter = time.Minute

// reach knows since when no call had an answer. Its zero value takes the cloud for reachable.
type reach struct {
	mu      sync.Mutex // guards the rest
	failing time.Time  // zero while calls have answers
	last    error
}

// note takes the outcome of a call. An answer that refuses the access key counts as none: nothing can be done with it.
func (r *reach) note(err error) {
	call, isCall := asAPIError(err)
	silent := err != nil && (!isCall || call.Code == "" || IsAuth(err))
	if errors.Is(err, context.Canceled) {
		return // whoever called has given up
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !silent:
		r.failing, r.last = time.Time{}, nil
	case r.failing.IsZero():
		r.failing, r.last = time.Now(), err
	default:
		r.last = err
	}
}

// Reachable returns nil, or why the cloud cannot be used: no call has had an answer for a minute, or the cloud has refused the access key
// since then. Without any call it stays at what the last ones showed.
func (c *Client) Reachable() error {
	c.reach.mu.Lock()
	defer c.reach.mu.Unlock()
	if since := c.reach.failing; !since.IsZero() && time.Since(since) >= unreachableAfter {
		return fmt.Errorf("no call has succeeded since %s: %w", since.UTC().Format(time.RFC3339), c.reach.last)
	}
	return nil
}
