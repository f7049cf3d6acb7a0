package service

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
)

// interrupts are the passes under way. One whose next call waits for the rate limit gives up when something changes: the next
// pass, which comes at once and takes the same place in the queue, plans with what is known then, so that changes that come while
// the limit is used up cost no calls of their own.
type interrupts struct {
	mu       sync.Mutex // guards the rest
	underWay map[types.NamespacedName]chan struct{}
	begun    uint64 // passes so far
}

// beginPass notes a pass and returns its number, what is closed when it should give up waiting, and the function that notes its end.
func (t *interrupts) beginPass(key types.NamespacedName) (number uint64, interrupt <-chan struct{}, end func()) {
	turn := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.underWay == nil {
		t.underWay = map[types.NamespacedName]chan struct{}{}
	}
	t.underWay[key] = turn
	t.begun++
	return t.begun, turn, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.underWay[key] == turn {
			delete(t.underWay, key)
		}
	}
}

// interruptPass has the Service's pass, if one is under way, give up waiting.
func (t *interrupts) interruptPass(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn, ok := t.underWay[key]; ok {
		close(turn)
		delete(t.underWay, key)
	}
}

// Interrupt has the pass over a Service, if one waits for the rate limit, make room for one that knows more. It cancels no call
// that has begun.
func (r *Reconciler) Interrupt(key types.NamespacedName) { r.interrupts.interruptPass(key) }

// takeTurn returns a context whose calls wait in the Service's place, and the function to call with the error of the pass. That
// returns since when the Service waits: a pass that was interrupted leaves its place to the next one.
func (r *Reconciler) takeTurn(
	ctx context.Context, key types.NamespacedName, before backoff,
) (turn context.Context, end func(error) time.Time) {
	number, interrupt, done := r.interrupts.beginPass(key)
	since := before.waitingSince
	if since.IsZero() {
		since = time.Now()
	}
	waiting := alicloud.WaitingOf(ctx)
	waiting.Since, waiting.Pass, waiting.Interrupt, waiting.Priority = since, number, interrupt, alicloud.PriorityListener
	waiting.Tenant = key.Namespace
	return alicloud.WithWaiting(ctx, waiting), func(err error) time.Time {
		done()
		if failure.IsInterrupted(err) {
			return since
		}
		return time.Time{}
	}
}
