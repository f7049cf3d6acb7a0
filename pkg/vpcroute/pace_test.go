package vpcroute

import (
	"testing"
	"time"
)

// TestPace plays a cloud that needs a second after each batch: the pace must come close to it with few refusals.
func TestPace(t *testing.T) {
	t.Parallel()
	for _, settle := range []time.Duration{0, 30 * time.Millisecond, time.Second, 7 * time.Second} {
		var p pace
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now, free, refusals := start, start, 0
		const batches = 20
		for range batches {
			now = now.Add(p.delay(now))
			for attempt := 0; now.Before(free); attempt++ {
				refusals++
				now = now.Add(p.busy(now, attempt))
			}
			p.accepted(now)
			free = now.Add(settle)
		}
		least := settle * (batches - 1)
		if took := now.Sub(start); took > least*12/10 {
			t.Errorf("settle %s: %d batches took %s, want at most 1.2 times %s", settle, batches, took, least)
		}
		if refusals > 16 {
			t.Errorf("settle %s: %d refused calls for %d batches, want at most 16", settle, refusals, batches)
		}
	}
}

func TestPaceForgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := pace{last: now, short: time.Second, right: 2 * time.Second}
	if got := p.delay(now.Add(relearn)); got != 0 {
		t.Errorf("delay after %s without writes = %s, want 0", relearn, got)
	}
	if p.short != 0 || p.right != 0 {
		t.Errorf("learned times are still %s and %s", p.short, p.right)
	}
}
