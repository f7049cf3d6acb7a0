package vpcroute

import (
	"context"
	"time"
)

// signal wakes a loop that is not awake yet.
func signal(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// collect returns when the quiet period after a signal is over, so that what comes together is handled together; at most
// five quiet periods. It returns false when the context ended.
func collect(ctx context.Context, kick <-chan struct{}, quiet time.Duration) bool {
	limit := time.NewTimer(5 * quiet)
	defer limit.Stop()
	for {
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
		case <-kick:
			pause.Stop()
		}
	}
}
