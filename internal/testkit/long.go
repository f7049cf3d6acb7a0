package testkit

import "testing"

// Long marks a test that takes long because it goes through hundreds of cases, or through hours of many Services. The race detector would make it several times
// slower, and find nothing that shorter tests do not: with it, the test is skipped. make test runs it without, see hack/long-tests.sh.
func Long(tb testing.TB) {
	tb.Helper()
	if raceDetector {
		tb.Skip("takes too long with the race detector: run it without")
	}
}
