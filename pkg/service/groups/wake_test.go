package groups

import (
	"testing"
	"time"
)

// TestSameReasonWakesOnce: two Services that wait for the same wake each other once, and not without end.
func TestSameReasonWakesOnce(t *testing.T) {
	t.Parallel()
	var m Memory
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		why   string
		want  bool
	}{
		{0, "port 80 is in use", true}, {0, "port 80 is in use", false}, {wakePause - time.Second, "port 80 is in use", false},
		{wakePause - time.Second, "has port 80", true}, {wakePause, "port 80 is in use", true}, {2 * wakePause, "port 80 is in use", true},
	} {
		if got := m.isNews("uid", step.why, now.Add(step.after)); got != step.want {
			t.Errorf("%q after %s wakes others: %v, want %v", step.why, step.after, got, step.want)
		}
	}
	m.Forget("uid")
	if !m.isNews("uid", "port 80 is in use", now.Add(2*wakePause)) {
		t.Error("a Service that was forgotten wakes nobody")
	}
}
