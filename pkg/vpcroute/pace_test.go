package vpcroute

import (
	"testing"
	"time"
)

// TestPace plays a cloud that needs some time after each batch: the pace must come close to it with few refusals.
func TestPace(t *testing.T) {
	t.Parallel()
	for _, settle := range []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond, time.Second, 1200 * time.Millisecond,
		7 * time.Second} {
		var p pace
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now, free, refusals := start, start, 0
		const batches = 20
		for range batches {
			now = now.Add(p.delay(now, ""))
			for now.Before(free) {
				refusals++
				if wait := p.delay(now, ""); !p.busy(now) || p.delay(now, "") <= 0 {
					t.Fatalf("settle %s: waits %s after a refusal", settle, wait)
				}
				now = now.Add(p.delay(now, ""))
			}
			p.last = now
			free = now.Add(settle)
		}
		least := settle * (batches - 1)
		// The first guess, and halving it, costs a fast cloud up to two seconds. Nothing is gained below the rate limit of 90 a minute.
		if took := now.Sub(start); took > max(least*12/10, least+2*likelySettle, batches*time.Minute/90) {
			t.Errorf("settle %s: %d batches took %s, want at most 1.2 times %s", settle, batches, took, least)
		}
		if refusals > 14 {
			t.Errorf("settle %s: %d refused calls for %d batches, want at most 14", settle, refusals, batches)
		}
		if settle == likelySettle && refusals > 2 {
			t.Errorf("settle %s: %d refused calls, want at most 2", settle, refusals)
		}
		t.Logf("settle %s: %s for %s, %d refusals", settle, now.Sub(start), least, refusals)
	}
}

// TestPaceOfOthers: a VPC that is busy with somebody else's change, long after our last batch, teaches nothing.
func TestPaceOfOthers(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.last = now
	now = now.Add(30 * time.Second)
	if wait := p.delay(now, ""); wait != 0 {
		t.Errorf("a batch long after the last one waits %s", wait)
	}
	for range 3 {
		if p.busy(now) {
			t.Error("a refusal long after the last batch counts as its work")
		}
		now = now.Add(time.Second)
		p.delay(now, "")
	}
	p.last = now
	if wait := p.delay(now, ""); wait != firstPause {
		t.Errorf("the next batch waits %s, want %s as after the first one", wait, firstPause)
	}
}

func TestPaceForgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := pace{last: now, settle: 2 * time.Second}
	if got := p.delay(now.Add(relearn), ""); got != 0 {
		t.Errorf("delay after %s without writes = %s, want 0", relearn, got)
	}
	if p.settle != 0 {
		t.Errorf("the learned time is still %s", p.settle)
	}
}

// TestPaceCollects: routes that fill no batch wait for further ones of their table after its last creations, and not after anything else.
func TestPaceCollects(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := pace{created: map[string]time.Time{}}
	if wait := p.delay(now, testTable); wait != 0 {
		t.Errorf("the first routes wait %s", wait)
	}
	p.last, p.created[testTable] = now, now
	now = now.Add(firstPause)
	if wait := p.delay(now, ""); wait != 0 {
		t.Errorf("a full batch waits %s", wait)
	}
	if wait := p.delay(now, testTable); wait != collectFor-firstPause {
		t.Errorf("further routes wait %s, want %s", wait, collectFor-firstPause)
	}
	if wait := p.delay(now, "vtb-second"); wait != 0 {
		t.Errorf("routes of another table wait %s", wait)
	}
}
