package alicloud

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLimiterStaysBelowQuota lets one action run as fast as it may for some minutes and counts its calls in the cloud's
// windows, whose clock may be a little ahead or behind. No window may be overrun, and little of the quota is left.
func TestLimiterStaysBelowQuota(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action string
		quota  quota
		total  int // in 5 minutes at least
	}{
		{"CreateLoadBalancer", quota{60, time.Minute}, 5 * 58},
		{"AddVServerGroupBackendServers", writeQuota, 5 * 88},
		{"UntagResources", quota{5, time.Second}, 5 * 60 * 3},
	} {
		for _, skew := range []time.Duration{0, 900 * time.Millisecond, -900 * time.Millisecond} {
			if test.quota.window < time.Minute {
				skew /= 1000
			}
			t.Run(fmt.Sprintf("%s, cloud %s ahead", test.action, skew), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(17 * time.Second) // bubble time: into the middle of a minute
					l := newLimiter(publishedQuotas)
					counts := map[time.Time]int{}
					total := 0
					for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
						if err := l.wait(t.Context(), test.action); err != nil {
							t.Fatal(err)
						}
						total++
						counts[time.Now().Add(skew).Truncate(test.quota.window)]++
					}
					for window, n := range counts {
						if n > test.quota.calls {
							t.Errorf("%d calls in the window of %s, quota %d", n, window, test.quota.calls)
						}
					}
					if total < test.total {
						t.Errorf("%d calls in 5 minutes, want at least %d: the quota is left unused", total, test.total)
					}
				})
			})
		}
	}
}

// TestIdleLimiterLetsCallsThroughAtOnce: also around the turn of the minute, where nobody else is in the way.
func TestIdleLimiterLetsCallsThroughAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(publishedQuotas)
		for range 2 * 60 * 2 { // two a second, for two minutes
			began := time.Now()
			if err := l.wait(t.Context(), "CreateVServerGroup"); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("a call at %s waited %s", began.Format(time.StampMilli), waited)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestUrgentCallsGoFirst: removals go before all, and whoever waits longest for its priority before the others; nobody waits for ever.
func TestUrgentCallsGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(map[string]quota{"SetX": {1, time.Minute}}) // one after the other
		if err := l.wait(t.Context(), "SetX"); err != nil {         // uses the window up
			t.Fatal(err)
		}
		var mu sync.Mutex // guards order
		var order []string
		var calls sync.WaitGroup
		now := time.Now()
		for _, w := range []struct {
			name string
			Waiting
		}{
			{"drift", Waiting{Priority: PriorityDrift}},
			{"late backend", Waiting{Priority: PriorityBackend, Since: now.Add(time.Second)}},
			{"early backend", Waiting{Priority: PriorityBackend, Since: now}},
			{"removal", Waiting{Priority: PriorityRemoval, Since: now.Add(2 * time.Second)}},
			{"old drift", Waiting{Priority: PriorityDrift, Since: now.Add(-5 * time.Minute)}},
		} {
			calls.Go(func() {
				if err := l.wait(WithWaiting(t.Context(), w.Waiting), "SetX"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, w.name)
			})
		}
		calls.Wait()
		want := []string{"removal", "old drift", "early backend", "late backend", "drift"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// TestWaitingCanBeInterrupted: the place is given up, nothing is left behind, and the quota is not used.
func TestWaitingCanBeInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(map[string]quota{"SetX": {1, time.Minute}})
		if err := l.wait(t.Context(), "SetX"); err != nil {
			t.Fatal(err)
		}
		interrupt := make(chan struct{})
		parked := 0
		result := make(chan error)
		go func() {
			result <- l.wait(WithWaiting(t.Context(), Waiting{Interrupt: interrupt, Parked: func() { parked++ }}), "SetX")
		}()
		synctest.Wait()
		close(interrupt)
		if err := <-result; !errors.Is(err, ErrInterrupted) || parked != 1 {
			t.Errorf("error %v, parked %d times; want %v and once", err, parked, ErrInterrupted)
		}
		began := time.Now()
		if err := l.wait(t.Context(), "SetX"); err != nil || time.Since(began) > time.Minute+2*clockGuard {
			t.Errorf("the next call waited %s: %v", time.Since(began), err)
		}
	})
}

func TestLimiterClosesThrottledActionUntilNextMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(publishedQuotas)
		time.Sleep(20 * time.Second) // bubble time: into the middle of a minute
		nextMinute := time.Now().Truncate(time.Minute).Add(time.Minute)
		l.throttled("CreateVServerGroup")
		if err := l.wait(t.Context(), "DeleteVServerGroup"); err != nil || time.Now().After(nextMinute) {
			t.Errorf("another action waited until %s: %v", time.Now(), err)
		}
		if err := l.wait(t.Context(), "CreateVServerGroup"); err != nil {
			t.Fatal(err)
		}
		if now := time.Now(); now.Before(nextMinute) || now.After(nextMinute.Add(maxReopenJitter)) {
			t.Errorf("the throttled action ran at %s, want within %s of %s", now, maxReopenJitter, nextMinute)
		}
	})
}

func TestLimiterWaitEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(publishedQuotas)
		l.throttled("CreateVServerGroup")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := l.wait(ctx, "CreateVServerGroup"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait returned %v, want the context's error", err)
		}
	})
}

func TestLimiterQuotas(t *testing.T) {
	t.Parallel()
	l := newLimiter(publishedQuotas)
	for action, want := range map[string]quota{
		"CreateLoadBalancer": {60, time.Minute}, "SetVServerGroupAttribute": writeQuota, "DescribeInstances": readQuota,
		"UntagResources": {5, time.Second},
	} {
		if got := l.quota(action); got != want {
			t.Errorf("quota of %s = %v, want %v", action, got, want)
		}
	}
}

// TestLimiterLearnsUnknownQuota lets the cloud admit so many calls a minute of an action whose quota is not published, and
// counts how long a thousand calls take and how many of them are refused.
func TestLimiterLearnsUnknownQuota(t *testing.T) {
	t.Parallel()
	const action, calls = "ModifyNetworkInterfaceAttribute", 1000
	for _, test := range []struct {
		quota   int
		within  time.Duration
		refused int
	}{
		{quota: 5000, within: time.Minute, refused: 0},
		{quota: 600, within: 3 * time.Minute, refused: 2},
		{quota: 200, within: 6 * time.Minute, refused: 4},
		{quota: 90, within: 13 * time.Minute, refused: 12}, // of more than a thousand calls
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(publishedQuotas)
			start, refused, window, used := time.Now(), 0, time.Time{}, 0
			for done := 0; done < calls; {
				if err := l.wait(t.Context(), action); err != nil {
					t.Fatal(err)
				}
				if now := time.Now().Truncate(time.Minute); !now.Equal(window) {
					window, used = now, 0
				}
				if used++; used > test.quota {
					refused++
					l.throttled(action)
					continue
				}
				done++
			}
			if took := time.Since(start); took > test.within || refused > test.refused {
				t.Errorf("quota %d: %d calls took %s with %d refused, want at most %s and %d", test.quota, calls, took, refused, test.within,
					test.refused)
			}
		})
	}
}

// TestUnknownQuotaIsNotLearnedForever: what others leave while they have a burst of calls is not taken for the quota of an action whose
// quota is not published.
func TestUnknownQuotaIsNotLearnedForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const action, left = "ModifyNetworkInterfaceAttribute", 40
		l := newLimiter(publishedQuotas)
		inMinute := func(most int) (calls int) {
			for window := time.Now().Truncate(time.Minute); calls < most; calls++ {
				if err := l.wait(t.Context(), action); err != nil {
					t.Fatal(err)
				}
				if !time.Now().Truncate(time.Minute).Equal(window) {
					break
				}
			}
			return calls
		}
		for range 4 {
			inMinute(left)
			l.throttled(action)
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		}
		time.Sleep(5 * time.Minute)
		if calls, want := inMinute(math.MaxInt), unknownQuotas[action].calls*9/10; calls < want {
			t.Errorf("five minutes after the last refusal %d calls per minute, want %d", calls, want)
		}
	})
}

// TestClockSetBackDoesNotKeepActionClosed: a throttled action opens again after its window, also when the clock is set back meanwhile.
func TestClockSetBackDoesNotKeepActionClosed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 20, 0, time.UTC)
	q := windowQuota{quota: writeQuota}
	q.lower(now, 0)
	q.refused(now, maxReopenJitter)
	if wait := q.next(now, 1, 0).Sub(now); wait != 40*time.Second+maxReopenJitter {
		t.Fatalf("after throttling the action waits %s, want until the next minute", wait)
	}
	back := now.Add(-8 * time.Hour)
	if wait := q.next(back, 1, 0).Sub(back); wait > time.Minute {
		t.Errorf("after the clock was set back by 8 hours the action waits %s", wait)
	}
	if got := q.allowance(back); got != writeQuota.calls {
		t.Errorf("after the clock was set back %d calls a window are allowed, want %d", got, writeQuota.calls)
	}
}

// TestThrottledOneSecondQuotaReopensSoon: an action whose windows last a second is not closed for a minute.
func TestThrottledOneSecondQuotaReopensSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(publishedQuotas)
		l.throttled("UntagResources")
		began := time.Now()
		if err := l.wait(t.Context(), "UntagResources"); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("the call waited %s: %v", time.Since(began), err)
		}
	})
}
