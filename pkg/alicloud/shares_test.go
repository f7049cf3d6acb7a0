package alicloud

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
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
	limiter       *limiter
	cloud         *sharedWindow
	mu            sync.Mutex // guards the rest
	random        *rand.Rand
	done, refused []time.Time
	urgent        []urgentCall
}

// urgentCall is when a manager had something urgent to do, and how long that took.
type urgentCall struct {
	began time.Time
	took  time.Duration
}

const sharedAction = "RemoveVServerGroupBackendServers"

// newManager makes a manager whose randomness is the same in each run.
func newManager(cloud *sharedWindow, number uint64) *manager {
	m := &manager{limiter: newLimiter(publishedQuotas), cloud: cloud, random: rand.New(rand.NewPCG(1, number))}
	m.limiter.random = rand.New(rand.NewPCG(2, number)).Float64 // the limiter calls it with its mutex
	return m
}

// send sends a call, which reaches the cloud a little later.
func (m *manager) send() bool {
	m.mu.Lock()
	latency := time.Duration(m.random.Int64N(int64(200 * time.Millisecond)))
	m.mu.Unlock()
	time.Sleep(latency)
	admitted := m.cloud.admit()
	m.mu.Lock()
	defer m.mu.Unlock()
	if admitted {
		m.done = append(m.done, time.Now())
	} else {
		m.refused = append(m.refused, time.Now())
	}
	return admitted
}

// call makes a call until the cloud admits it.
func (m *manager) call(ctx context.Context) bool {
	for m.limiter.wait(ctx, sharedAction) == nil {
		if m.send() {
			return true
		}
		m.limiter.throttled(sharedAction)
	}
	return false
}

// work makes calls of both kinds until ctx is done.
func (m *manager) work(ctx context.Context) {
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			for m.call(WithWaiting(ctx, Waiting{Priority: PriorityBackend, Tenant: "busy"})) {
			}
		})
	}
	calls.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(7 * time.Second)
			began := time.Now()
			if m.call(WithWaiting(ctx, Waiting{Priority: PriorityRemoval, Tenant: "urgent"})) {
				m.urgent = append(m.urgent, urgentCall{began, time.Since(began)})
			}
		}
	})
	calls.Wait()
}

// between counts the times from one to another.
func between(times []time.Time, from, to time.Time) (n int) {
	for _, at := range times {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// longestUrgent is the longest time that something urgent took that began at a time or later.
func (m *manager) longestUrgent(from time.Time) (longest time.Duration) {
	for _, call := range m.urgent {
		if !call.began.Before(from) {
			longest = max(longest, call.took)
		}
	}
	return longest
}

// share lets managers work, each of them beginning so much after the one before, beside calls of others, which may be nil.
func share(t *testing.T, managers int, apart, lasting time.Duration, others func(*sharedWindow)) []*manager {
	t.Helper()
	cloud := &sharedWindow{quota: writeQuota}
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var all []*manager
	var running sync.WaitGroup
	for i := range managers {
		m := newManager(cloud, uint64(i))
		all = append(all, m)
		running.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			m.work(ctx)
		})
	}
	if others != nil {
		running.Go(func() { others(cloud) })
	}
	running.Wait()
	return all
}

// TestManagersShareARateWindow: managers of one account, each with more to write than there is room for, come to equal shares of the
// window, use nearly all of it, and what is urgent never waits for long, whether they begin together or one finds the others at work. Few
// of their calls are refused.
func TestManagersShareARateWindow(t *testing.T) {
	t.Parallel()
	const settle, lasting, longestUrgent, refusedPerHour = 15 * time.Minute, time.Hour, 8 * time.Second, 40
	for _, test := range []struct {
		managers int
		apart    time.Duration
		uneven   float64 // the largest share, at most so many times the smallest one
	}{
		{2, 0, 1.25},
		{2, 5*time.Minute + 20*time.Second, 1.25},
		{3, 13 * time.Second, 1.25},
		{5, 13 * time.Second, 1.25},
	} {
		t.Run(fmt.Sprintf("%d managers, %s apart", test.managers, test.apart), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				from := time.Now().Add(time.Duration(test.managers-1)*test.apart + settle)
				end := from.Add(lasting)
				least, most, total := math.MaxInt, 0, 0
				for i, m := range share(t, test.managers, test.apart, time.Until(end), nil) {
					calls, refused, urgent := between(m.done, from, end), between(m.refused, from, end), m.longestUrgent(from)
					t.Logf("manager %d: %d calls, %d refused, urgent at most %s", i, calls, refused, urgent)
					if urgent > longestUrgent || refused > refusedPerHour {
						t.Errorf("manager %d: something urgent took %s, %d calls were refused; want at most %s and %d", i, urgent, refused, longestUrgent,
							refusedPerHour)
					}
					least, most, total = min(least, calls), max(most, calls), total+calls
				}
				if float64(most) > test.uneven*float64(least) {
					t.Errorf("shares of %d and %d calls", least, most)
				}
				if all := writeQuota.calls * int(lasting/time.Minute); total*100 < all*90 {
					t.Errorf("%d calls of %d", total, all)
				}
			})
		})
	}
}

// TestForeignBurstIsForgotten: somebody who knows no shares uses up the quota for some minutes. Five minutes after that, the managers of
// the account have all of it again, and from the next window on nothing urgent waits for long.
func TestForeignBurstIsForgotten(t *testing.T) {
	t.Parallel()
	const settle, forgotten, lasting, longestUrgent = 20 * time.Minute, 5 * time.Minute, 15 * time.Minute, 10 * time.Second
	for _, test := range []struct {
		calls          int
		every, burst   time.Duration
		phase          time.Duration // of the minute
		managers, want int           // calls per minute
	}{
		{writeQuota.calls, time.Minute, time.Minute, 0, 1, 88},
		{writeQuota.calls, time.Minute, 3 * time.Minute, 0, 1, 88},
		{3, time.Second, time.Minute, 30 * time.Second, 1, 88},
		{3, time.Second, 3 * time.Minute, 30 * time.Second, 1, 88},
		{writeQuota.calls, time.Minute, 3 * time.Minute, 0, 2, 76},
		{3, time.Second, 3 * time.Minute, 30 * time.Second, 2, 76},
	} {
		t.Run(fmt.Sprintf("%d per %s for %s beside %d", test.calls, test.every, test.burst, test.managers), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begins := time.Now().Add(settle + test.phase)
				ends := begins.Add(test.burst)
				managers := share(t, test.managers, 0, time.Until(ends.Add(lasting)), func(cloud *sharedWindow) {
					time.Sleep(time.Until(begins))
					for ; time.Now().Before(ends); time.Sleep(test.every) {
						for range test.calls {
							cloud.admit()
						}
					}
				})
				var perMinute []int
				for from := ends.Truncate(time.Minute); from.Before(ends.Add(lasting - time.Minute)); from = from.Add(time.Minute) {
					calls := 0
					for _, m := range managers {
						calls += between(m.done, from, from.Add(time.Minute))
					}
					perMinute = append(perMinute, calls)
					if from.Sub(ends) >= forgotten && calls < test.want {
						t.Errorf("%d calls in the minute from %s after the burst, want %d", calls, from.Sub(ends), test.want)
					}
				}
				t.Logf("calls per minute after the burst: %v", perMinute)
				for i, m := range managers {
					// The burst has used up the window that it ends in.
					if took := m.longestUrgent(ends.Add(time.Minute - 1).Truncate(time.Minute)); took > longestUrgent {
						t.Errorf("manager %d: something urgent took %s", i, took)
					}
				}
			})
		})
	}
}

// TestFirstWindowProvesNothing: a process that begins in a window that another one has used up has all of the quota from the next window
// on; only a refusal there, too, shows that it shares the quota.
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
