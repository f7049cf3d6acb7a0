// Package sleep waits for a time that a context can cut short.
package sleep

import (
	"context"
	"time"
)

// For waits. It returns the cause if the context ends before, or has ended already. A time that is not positive is over at once.
func For(ctx context.Context, duration time.Duration) error {
	if duration <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
