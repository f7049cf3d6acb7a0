package alicloud

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// refusal is a window in which the cloud let so many calls through and refused the next one, so many windows after the refusal before.
type refusal struct{ after, through int }

// TestShare: what is ours of a quota of 90 calls after windows with refusals, and after those without.
func TestShare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusals []refusal
		want     []int // in the windows after that
	}{
		"another manager has half of it":       {[]refusal{{1, 45}}, []int{40, 44, 52, 68, 90}},
		"another one, for an hour":             {[]refusal{{1, 45}, {3, 46}, {3, 44}, {3, 45}}, []int{40, 44, 52, 68, 90}},
		"a few calls of others":                {[]refusal{{1, 85}}, []int{74, 78, 86, 90}},
		"a burst in the first second":          {[]refusal{{1, 0}}, []int{47, 82, 90}},
		"bursts in three windows":              {[]refusal{{1, 0}, {1, 0}, {1, 0}}, []int{14, 82, 90}},
		"bursts in many windows":               {[]refusal{{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}}, []int{11, 82, 90}},
		"a burst beside another manager":       {[]refusal{{1, 45}, {3, 46}, {2, 0}, {1, 0}}, []int{14, 45, 53, 69, 90}},
		"a burst an hour after that":           {[]refusal{{1, 45}, {3, 46}, {60, 0}}, []int{47, 82, 90}},
		"a window in which little was left":    {[]refusal{{1, 60}, {2, 30}}, []int{27, 31, 39, 55, 87, 90}},
		"more than what was ours":              {[]refusal{{1, 0}, {1, 80}}, []int{41, 45, 53, 69, 90}},
		"a refusal in a window without a call": {[]refusal{{1, -1}}, []int{47, 82, 90}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
			q := windowQuota{quota: writeQuota}
			for _, r := range test.refusals {
				now = now.Add(time.Duration(r.after) * time.Minute)
				q = q.at(now)
				for range r.through + 1 {
					q.take(now)
				}
				for range 20 { // all calls on their way are refused
					q.lower(now, 0)
				}
			}
			var got []int
			for q.shares(now) {
				now = now.Add(time.Minute)
				got = append(got, q.allowance(now))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("calls per window (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTrialsAreLast: what is proven to be ours goes evenly over the window, and what we try for beyond that at its end.
func TestTrialsAreLast(t *testing.T) {
	t.Parallel()
	window := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	q := windowQuota{quota: writeQuota, window: window, share: 10, sharedAt: window.Add(-2 * time.Minute)}
	q.proven = q.share
	var got []time.Duration
	for range 18 {
		got = append(got, q.slot(window, 1, 0).Round(100*time.Millisecond))
		q.used++
	}
	const s = time.Second
	want := []time.Duration{
		0, 5500 * time.Millisecond, 11 * s, 16500 * time.Millisecond, 22 * s, 27500 * time.Millisecond, 33 * s, 38500 * time.Millisecond, 44 * s,
		49500 * time.Millisecond,
		55 * s, 55500 * time.Millisecond, 56 * s, 56500 * time.Millisecond, 57 * s, 57500 * time.Millisecond,
	}
	if allowed := q.allowance(window); allowed != len(want) {
		t.Errorf("%d calls, want %d", allowed, len(want))
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

// TestGuessedQuota: what is ours of a quota that is guessed far too high becomes small enough, and large again without refusals.
func TestGuessedQuota(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	q := windowQuota{quota: unknownQuotas["ModifyNetworkInterfaceAttribute"]}
	for range 10 {
		now = now.Add(time.Minute)
		q.lower(now, 0)
	}
	if got := q.allowance(now); got != leastCalls {
		t.Errorf("%d calls per window, want %d", got, leastCalls)
	}
	if now = now.Add(5 * time.Minute); q.shares(now) {
		t.Errorf("five minutes later %d calls per window", q.allowance(now))
	}
}

// TestWhatFitsGoesAtOnce: calls that fit into the window but for its reserve wait for nothing, also those of a queue in a new window. An
// urgent call in a window whose reserve is all that is left waits for a second, and so do the next ones.
func TestWhatFitsGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(map[string]quota{"SetX": writeQuota})
		send := func(n int, w Waiting) (took time.Duration) {
			began := time.Now()
			var calls sync.WaitGroup
			for range n {
				calls.Go(func() {
					if err := l.wait(WithWaiting(t.Context(), w), "SetX"); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			return time.Since(began)
		}
		time.Sleep(10 * time.Second)
		if took := send(80, Waiting{Priority: PriorityBackend}); took != 0 {
			t.Errorf("80 calls took %s", took)
		}
		for i := range 5 {
			if took := send(1, Waiting{Priority: PriorityRemoval}); took > time.Second {
				t.Errorf("urgent call %d took %s", i, took)
			}
		}
		slot := time.Now().Truncate(time.Minute).Add(55 * time.Second) // the 86th of 90
		if took := send(1, Waiting{Priority: PriorityBackend}); took < time.Second || time.Now().After(slot) {
			t.Errorf("a call beyond what fits took %s, want until its place in the minute", took)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 10*time.Second)))
		if took, most := send(170, Waiting{Priority: PriorityBackend}), 51*time.Second; took > most {
			t.Errorf("170 calls took %s, want %s: those left for the next window go at once there", took, most)
		}
	})
}
