package backend

import (
	"testing"
	"time"
)

func nobody(string) bool { return false }

func TestGateWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]time.Duration{
		0: MinGateWait, 5 * time.Second: MinGateWait, time.Minute: 6 * time.Second, time.Hour: MaxGateWait, -time.Minute: MinGateWait,
	} {
		if got := GateWait([]GatedPod{{Address: "10.1.0.1", Since: now.Add(-age)}}, nobody, now); got != want {
			t.Errorf("after %s: %s, want %s", age, got, want)
		}
	}
	if got := GateWait(nil, nobody, now); got != 0 {
		t.Errorf("without gates: %s", got)
	}
}
