package vpcroute

import (
	"context"
	"sync/atomic"
	"time"
)

// signal wakes a loop that is not awake yet.
func signal(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// burst collects signals, so that what comes together is handled together.
type burst struct {
	kick  chan struct{}
	count atomic.Int64 // signals since the last collect ended
}

func newBurst() *burst { return &burst{kick: make(chan struct{}, 1)} }

func (b *burst) signal() {
	b.count.Add(1)
	signal(b.kick)
}

// collect returns when the quiet period after a signal is over, or as soon as there were so many signals that waiting for
// more gains nothing; after five quiet periods, and at the time next, at the latest. It returns false when the context
// ended.
func (b *burst) collect(ctx context.Context, quiet time.Duration, enough int64, next time.Time) bool {
	defer b.count.Store(0)
	limit := time.NewTimer(min(5*quiet, time.Until(next)))
	defer limit.Stop()
	for b.count.Load() < enough {
		pause := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			pause.Stop()
			return false
		case <-limit.C:
			pause.Stop()
			return true
		case <-pause.C:
			return true
		case <-b.kick:
			pause.Stop()
		}
	}
	return true
}
