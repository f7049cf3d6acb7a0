package alicloud

import (
	"context"
	"errors"
	"time"
)

// Priority orders the calls that wait for the same action's quota; the smallest goes first.
type Priority int

// The priorities of what waits. [PriorityRemoval] is for backends that no longer answer, whose traffic is lost until they
// are out.
const (
	PriorityRemoval Priority = iota
	PriorityBackend
	PriorityListener
	PriorityAttribute
	PriorityDrift
)

// aging is how much longer than a call of the next higher priority one must have waited to go before it. It keeps a steady
// flow of urgent calls from holding the others up for ever. Removals go before all others of their tenant, see [agedShare].
const aging = 30 * time.Second

// ErrInterrupted is what a call returns that gave up its place because [Waiting.Interrupt] was closed. It did nothing.
var ErrInterrupted = errors.New("gave up waiting for the rate limit")

// Waiting says how calls wait for the rate limit. The zero value waits as [PriorityRemoval] from now on.
type Waiting struct {
	Priority Priority
	// Since is since when what the call is for has been waiting, which decides among calls of one priority. Zero means now.
	Since time.Time
	// Pass numbers the pass that makes the call. A pass that gave up its place leaves Since to the next one, which plans anew and has another
	// number. Zero says nothing: each call counts as one of another pass.
	Pass uint64
	// Tenant is whom the call is for. Calls of one priority go in turns over the tenants that wait.
	Tenant string
	// Target is what the call writes to. While the quota is used up, a target that was written to in the window waits for its next turn behind
	// equally urgent calls for others, so that further changes go into the same call. Empty for no such order.
	Target string
	// Interrupt, when closed, ends the waiting with [ErrInterrupted]. It never ends a call that has begun, of which nobody
	// would know what it did.
	Interrupt <-chan struct{}
	// Parked and Resumed, if not nil, are called when a call has to wait, and when that has ended for whatever reason.
	Parked, Resumed func()
}

type waitingKey struct{}

// WithWaiting returns a context whose calls wait as w says. Without it calls wait as [PriorityAttribute].
func WithWaiting(ctx context.Context, w Waiting) context.Context {
	return context.WithValue(ctx, waitingKey{}, w)
}

// WaitingOf returns how calls with the context wait.
func WaitingOf(ctx context.Context) Waiting {
	if w, ok := ctx.Value(waitingKey{}).(Waiting); ok {
		return w
	}
	return Waiting{Priority: PriorityAttribute}
}

// rank orders waiting calls; the earliest goes first.
func (w Waiting) rank(now time.Time) time.Time {
	since := w.Since
	if since.IsZero() {
		since = now
	}
	return w.rankSince(since)
}

// rankSince is the rank of a call that waits since then.
func (w Waiting) rankSince(t time.Time) time.Time { return t.Add(time.Duration(w.Priority) * aging) }
