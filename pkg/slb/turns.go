package slb

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// turns are the passes under way. One whose next call waits for the rate limit gives up its place when something changes:
// the next pass, which comes at once and takes the same place, plans with what is known then, so that changes that come
// while the limit is used up cost no calls of their own.
type turns struct {
	mu       sync.Mutex // guards underWay
	underWay map[types.NamespacedName]chan struct{}
}

// begin notes a pass and returns what is closed when it should give up waiting, and the function that notes its end.
func (t *turns) begin(key types.NamespacedName) (interrupt <-chan struct{}, end func()) {
	turn := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.underWay == nil {
		t.underWay = map[types.NamespacedName]chan struct{}{}
	}
	t.underWay[key] = turn
	return turn, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.underWay[key] == turn {
			delete(t.underWay, key)
		}
	}
}

// interrupt has the Service's pass, if one is under way, give up waiting.
func (t *turns) interrupt(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn, ok := t.underWay[key]; ok {
		close(turn)
		delete(t.underWay, key)
	}
}

// Interrupt tells that something about the Service has changed. It cancels no call that has begun.
func (r *Reconciler) Interrupt(key types.NamespacedName) { r.turns.interrupt(key) }

// takeTurn returns a context whose calls wait in the Service's place, and the function to call with the error of the pass.
// A pass that gave up waiting leaves its place to the next one.
func (r *Reconciler) takeTurn(ctx context.Context, key types.NamespacedName, known *memory) (turn context.Context, end func(error)) {
	interrupt, done := r.turns.begin(key)
	if known.waiting.IsZero() {
		known.waiting = time.Now()
	}
	waiting := alicloud.WaitingOf(ctx)
	waiting.Since, waiting.Interrupt, waiting.Priority = known.waiting, interrupt, alicloud.PriorityListener
	return alicloud.WithWaiting(ctx, waiting), func(err error) {
		done()
		if !interrupted(err) {
			known.waiting = time.Time{}
		}
	}
}
