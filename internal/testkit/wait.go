package testkit

import (
	"context"
	"errors"
	"testing"
	"time"
)

const (
	// Patience is how long a test waits for what happens in real time. It is long because a busy machine is no failure.
	Patience = 2 * time.Minute
	// interval is short, so that a test that waits ends soon after what it waits for.
	interval = 10 * time.Millisecond
)

// Eventually polls until the condition holds. It fails the test when that takes longer than [Patience].
func Eventually(tb testing.TB, what string, holds func(ctx context.Context) bool) {
	tb.Helper()
	Until(tb, what, func(ctx context.Context) string {
		if holds(ctx) {
			return ""
		}
		return "does not hold"
	})
}

// Until polls until missing returns an empty string. It fails the test when that takes longer than [Patience], and then says
// what was missing last.
func Until(tb testing.TB, what string, missing func(ctx context.Context) string) {
	tb.Helper()
	if err := Poll(tb.Context(), Patience, func(ctx context.Context) (string, error) { return missing(ctx), nil }); err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}

// Poll calls missing until it returns an empty string, until it returns an error, or until the time is over. Its error says
// what was missing last.
func Poll(ctx context.Context, within time.Duration, missing func(ctx context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := "nothing was read"
	for {
		now, err := missing(ctx)
		switch {
		case err != nil:
			return err
		case now == "":
			return nil
		case ctx.Err() == nil: // what fails because the time is over says nothing
			last = now
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.New(last + " (waited " + within.String() + ")")
		}
	}
}
