package alicloud

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimiterStaysBelowQuota lets one action run as fast as it may for some minutes and counts its calls in every
// one-minute window, as the cloud does.
func TestLimiterStaysBelowQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(publishedQuotas)
		counts := map[time.Time]int{}
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
			if err := l.wait(t.Context(), "CreateLoadBalancer"); err != nil {
				t.Fatal(err)
			}
			counts[time.Now().Truncate(time.Minute)]++
		}
		total := 0
		for window, n := range counts {
			total += n
			if n > 60 {
				t.Errorf("%d calls in the minute of %s, quota 60", n, window)
			}
		}
		if total < 5*40 {
			t.Errorf("%d calls in 5 minutes: the quota is left unused", total)
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
		{quota: 200, within: 7 * time.Minute, refused: 2},
		{quota: 90, within: 17 * time.Minute, refused: 2},
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
				t.Errorf("quota %d: %d calls took %s with %d refused, want at most %s and %d", test.quota, calls, took, refused, test.within, test.refused)
			}
		})
	}
}
