package driver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestListing: one pass reads a list for all, and none waits long for it. After a failure, nobody asks again at once.
func TestListing(t *testing.T) {
	t.Parallel()
	const age = time.Minute
	synctest.Test(t, func(t *testing.T) {
		var list Listing[int]
		reads, takes, failure := 0, time.Second, error(nil)
		read := func(ctx context.Context) (int, error) {
			reads++
			n := reads
			select {
			case <-time.After(takes):
				return n, failure
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		within := func(ctx context.Context, want int, wantErr error) {
			t.Helper()
			if got, err := list.Within(ctx, age, read); !errors.Is(err, wantErr) || err == nil && got != want {
				t.Errorf("%d, %v; want %d, %v", got, err, want, wantErr)
			}
		}
		all := func(want int, wantErr error) {
			t.Helper()
			var passes sync.WaitGroup
			for range 5 {
				passes.Go(func() { within(t.Context(), want, wantErr) })
			}
			passes.Wait()
		}
		all(1, nil)
		time.Sleep(age - 2*time.Second)
		all(1, nil)
		time.Sleep(time.Second)
		all(2, nil) // a minute after the first one was asked for

		time.Sleep(age)
		failure = errors.New("unavailable")
		all(0, failure)
		time.Sleep(listingRetry - time.Second)
		within(t.Context(), 0, failure)
		if reads != 3 {
			t.Errorf("%d reads, want 3", reads)
		}
		time.Sleep(time.Second)
		failure = nil
		within(t.Context(), 4, nil)

		time.Sleep(age)
		takes = 2 * listingWait
		go within(t.Context(), 5, nil)
		synctest.Wait()
		begin := time.Now()
		if within(t.Context(), 0, errListingBusy); time.Since(begin) != listingWait {
			t.Errorf("waited %s, want %s", time.Since(begin), listingWait)
		}
		time.Sleep(listingWait)
		synctest.Wait()
		within(t.Context(), 5, nil)

		time.Sleep(age)
		ctx, cancel := context.WithCancel(t.Context())
		go within(ctx, 0, context.Canceled)
		synctest.Wait()
		cancel()
		synctest.Wait()
		within(t.Context(), 7, nil) // a pass that ended early is no failure of the list
	})
}
