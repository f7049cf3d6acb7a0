package alicloud

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sharedWindow is a rate window of the cloud that several callers use.
type sharedWindow struct {
	mu     sync.Mutex // guards the rest
	quota  quota
	window time.Time
	used   int
}

// admit counts a call, or refuses it.
func (w *sharedWindow) admit() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now().Truncate(w.quota.window); !now.Equal(w.window) {
		w.window, w.used = now, 0
	}
	if w.used >= w.quota.calls {
		return false
	}
	w.used++
	return true
}

// manager is a caller of a shared window, with a queue that never ends and now and then something urgent.
type manager struct {
	limiter *limiter
	cloud   *sharedWindow
	done    []time.Time
	refused int
	urgent  time.Duration // the longest time that something urgent took
}

const sharedAction = "RemoveVServerGroupBackendServers"

// call makes a call until the cloud admits it.
func (m *manager) call(ctx context.Context, mu *sync.Mutex) bool {
	for ctx.Err() == nil {
		if m.limiter.wait(ctx, sharedAction) != nil {
			return false
		}
		if m.cloud.admit() {
			mu.Lock()
			m.done = append(m.done, time.Now())
			mu.Unlock()
			return true
		}
		mu.Lock()
		m.refused++
		mu.Unlock()
		m.limiter.throttled(sharedAction)
	}
	return false
}

// work makes calls of both kinds until ctx is done. What is urgent is measured from the time on from which shares are known.
func (m *manager) work(ctx context.Context, settled time.Time) {
	var mu sync.Mutex // guards m
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			for m.call(WithWaiting(ctx, Waiting{Priority: PriorityBackend, Tenant: "busy"}), &mu) {
			}
		})
	}
	calls.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(7 * time.Second)
			began := time.Now()
			if m.call(WithWaiting(ctx, Waiting{Priority: PriorityRemoval, Tenant: "urgent"}), &mu) && began.After(settled) {
				m.urgent = max(m.urgent, time.Since(began))
			}
		}
	})
	calls.Wait()
}

// TestManagersShareARateWindow: two managers of one account, each with more to write than there is room for, come to equal shares of the window, use nearly all
// of it, and what is urgent never waits for long, whether they begin together or one finds the other at work. Alone again, one has all of it.
func TestManagersShareARateWindow(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"together": 0, "one after the other": 5*time.Minute + 20*time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const settle, lasting = 10 * time.Minute, 30 * time.Minute
				cloud := &sharedWindow{quota: writeQuota}
				start := time.Now().Add(late)
				ctx, cancel := context.WithTimeout(t.Context(), late+settle+lasting)
				defer cancel()
				managers := [2]manager{{limiter: newLimiter(publishedQuotas), cloud: cloud}, {limiter: newLimiter(publishedQuotas), cloud: cloud}}
				var running sync.WaitGroup
				for i := range managers {
					running.Go(func() {
						time.Sleep(time.Duration(i) * late)
						managers[i].work(ctx, start.Add(settle))
					})
				}
				running.Wait()
				counts := [2]int{}
				for i := range managers {
					for _, at := range managers[i].done {
						if at.After(start.Add(settle)) {
							counts[i]++
						}
					}
					t.Logf("manager %d: %d calls in %s, %d refused, urgent at most %s", i, counts[i], lasting, managers[i].refused, managers[i].urgent)
					if managers[i].urgent > 10*time.Second {
						t.Errorf("manager %d: something urgent took %s", i, managers[i].urgent)
					}
				}
				if least, most := min(counts[0], counts[1]), max(counts[0], counts[1]); float64(most) > 1.25*float64(least) {
					t.Errorf("shares of %d and %d calls", least, most)
				}
				if total, all := counts[0]+counts[1], writeQuota.calls*int(lasting/time.Minute); total*100 < all*85 {
					t.Errorf("%d calls of %d", total, all)
				}
			})
		})
	}
}

// TestShareGrows: an action that was throttled once has all of its quota again in less than an hour, and a storm of refusals in one window counts once.
func TestShareGrows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 20, 0, time.UTC)
	q := windowQuota{quota: writeQuota}
	for range 20 {
		q.lower(now)
	}
	if got := q.allowance(now); got != writeQuota.calls/2 {
		t.Errorf("after one window with refusals %d calls, want half", got)
	}
	for range 10 {
		now = now.Add(time.Minute)
		q.lower(now)
	}
	if got, least := q.allowance(now), writeQuota.calls/10; got < least {
		t.Errorf("%d calls, want at least %d", got, least)
	}
	if got := q.allowance(now.Add(time.Hour)); got != writeQuota.calls || q.shares(now.Add(time.Hour)) {
		t.Errorf("an hour later %d calls", got)
	}
}

// TestFirstWindowProvesNothing: a process that begins in a window that another one has used up has all of the quota from the next window on; only a refusal
// there, too, shows that it shares the quota.
func TestFirstWindowProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(publishedQuotas)
		admitted := func(window time.Time) (calls int) {
			for {
				if err := l.wait(t.Context(), sharedAction); err != nil {
					t.Fatal(err)
				}
				if !time.Now().Truncate(time.Minute).Equal(window) {
					return calls
				}
				calls++
			}
		}
		window := time.Now().Truncate(time.Minute)
		time.Sleep(30 * time.Second)
		for range 20 {
			if err := l.wait(t.Context(), sharedAction); err != nil {
				t.Fatal(err)
			}
		}
		l.throttled(sharedAction)
		if calls := admitted(window); calls != 0 {
			t.Errorf("%d calls after the cloud refused one", calls)
		}
		if calls := 1 + admitted(window.Add(time.Minute)); calls != writeQuota.calls {
			t.Errorf("%d calls in the first whole window, want %d", calls, writeQuota.calls)
		}
		l.throttled(sharedAction)
		admitted(window.Add(2 * time.Minute))
		if calls := 1 + admitted(window.Add(3*time.Minute)); calls > writeQuota.calls/2 {
			t.Errorf("%d calls after refusals in two windows, want %d at most", calls, writeQuota.calls/2)
		}
	})
}
