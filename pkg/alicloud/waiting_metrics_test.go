package alicloud

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics/testutil"
)

// TestWaitingCallsInMetrics: a scrape shows how many calls wait for their rate limit now.
func TestWaitingCallsInMetrics(t *testing.T) {
	t.Parallel()
	registerMetrics()
	synctest.Test(t, func(t *testing.T) {
		action, waiting := "Test"+t.Name(), 5
		l := newLimiter(map[string]quota{action: {2, time.Minute}})
		for range 2 {
			if err := l.wait(t.Context(), action); err != nil {
				t.Fatal(err)
			}
		}
		for range waiting {
			go func() { _ = l.wait(t.Context(), action) }() //nolint:errcheck // that it waits is what is tested
		}
		synctest.Wait()
		count := func() float64 {
			t.Helper()
			n, err := testutil.GetGaugeMetricValue(callsWaiting.WithLabelValues(action))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if got := count(); got != float64(waiting) {
			t.Errorf("%v calls wait, want %d", got, waiting)
		}
		time.Sleep(10 * time.Minute)
		if got := count(); got != 0 {
			t.Errorf("%v calls wait after all have gone", got)
		}
	})
}
