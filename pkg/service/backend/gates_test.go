package backend

import (
	"testing"
	"time"
)

func TestGateWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]time.Duration{
		0: MinGateWait, 5 * time.Second: MinGateWait, time.Minute: 6 * time.Second, time.Hour: MaxGateWait, -time.Minute: MinGateWait,
	} {
		if got := (GatedPod{Since: now.Add(-age)}).GateWait(now); got != want {
			t.Errorf("after %s: %s, want %s", age, got, want)
		}
	}
}
