package alicloud

import (
	"errors"
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

// TestCredentialsExpiryInMetrics: a scrape shows when temporary keys expire, and how often they were fetched; a failed fetch changes only
// the latter.
func TestCredentialsExpiryInMetrics(t *testing.T) {
	t.Parallel()
	registerMetrics()
	synctest.Test(t, func(t *testing.T) {
		source, name := &keySource{}, t.Name()
		keys := newTemporaryCredentials(name, source.fetch)
		check := func(wantExpiry time.Time, succeeded, failed float64) {
			t.Helper()
			expiry, err := testutil.GetGaugeMetricValue(credentialsExpiry.WithLabelValues(name))
			if err != nil || expiry != float64(wantExpiry.Unix()) {
				t.Errorf("expiry %v, error %v, want %v", expiry, err, wantExpiry.Unix())
			}
			for result, want := range map[string]float64{"success": succeeded, "error": failed} {
				if got, err := testutil.GetCounterMetricValue(credentialsFetched.WithLabelValues(name, result)); err != nil || got != want {
					t.Errorf("%s: %v, error %v, want %v", result, got, err, want)
				}
			}
		}
		first, err := keys.Credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check(first.Expiration, 1, 0)
		source.set(errors.New("the source is down"))
		time.Sleep(time.Until(first.Expiration) - time.Second)
		if _, err = keys.Credentials(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(first.Expiration, 1, 1)
		source.set(nil)
		time.Sleep(time.Minute)
		second, err := keys.Credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check(second.Expiration, 2, 1)
	})
}
