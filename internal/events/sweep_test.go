package events

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// TestManyProblemsAreSweptOnceAMinute: a pass that emits about thousands of objects looks at all remembered ones once, and not once for
// each, which would take its time squared.
func TestManyProblemsAreSweptOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(&record.FakeRecorder{}, time.Hour)
		emit := func(name string) {
			r.Emit(Subject{Name: name}, Event{Type: corev1.EventTypeWarning, Reason: "Missing"})
		}
		remembers := func(when string, want int) {
			t.Helper()
			if n := len(r.subjects); n != want {
				t.Errorf("%s: %d subjects are remembered, want %d", when, n, want)
			}
		}
		emit("first")
		time.Sleep(sweepInterval / 2)
		emit("second")
		time.Sleep(keep - sweepInterval/2 + time.Second)
		emit("third")
		remembers("once the first is forgotten", 2)
		time.Sleep(sweepInterval / 2)
		emit("third")
		remembers("within the same minute", 2)
		time.Sleep(sweepInterval / 2)
		emit("third")
		remembers("a minute later", 1)
	})
}
