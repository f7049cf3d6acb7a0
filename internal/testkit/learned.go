package testkit

import "testing"

// WantLearned checks what refusals have shown of a quota, by instance: that there were some, and that each shows the quota as it is.
func WantLearned(tb testing.TB, learned map[string]int, want int) {
	tb.Helper()
	if len(learned) == 0 {
		tb.Error("the cloud refused nothing")
	}
	for id, most := range learned {
		if most != want {
			tb.Errorf("the quota of %s is taken for %d, and is %d", id, most, want)
		}
	}
}
