package vpcroute

import "time"

// Bounds of the pace of writes.
const (
	// firstRetry and maxRetry bound the wait after the cloud said that it is busy with somebody else's change.
	firstRetry = 50 * time.Millisecond
	maxRetry   = 5 * time.Second
	// likelySettle is how long the cloud is taken to need for a batch while nothing is known: each try and each read of
	// the tables before that is likely to be a wasted call.
	likelySettle = time.Second
	// limitPace is the time between two batches that the rate limit of 90 a minute enforces. There is little to gain below it.
	limitPace = time.Minute / 90
	// relearn is after how long without writes the learned time is dropped: the cloud may be faster by then.
	relearn = 2 * time.Minute
)

// pace learns how long the cloud needs between two batches, so that it is neither asked in vain nor left idle. It keeps
// the longest time that was too short and the shortest that was enough, and tries the middle until they are close.
type batchPacer struct {
	last         time.Time // when the last batch was accepted
	short, right time.Duration
	refused      bool // since the last batch was accepted
	// idle says that the batch under way came long after the last one, so that its fate says nothing about that one.
	idle bool
}

// delay is how long to wait before the next batch.
func (p *batchPacer) delay(now time.Time) time.Duration {
	since := now.Sub(p.last)
	if since >= relearn {
		p.short, p.right = 0, 0
	}
	if !p.refused {
		p.idle = since > max(likelySettle, 2*p.right)
	}
	return max(0, p.target()-since)
}

func (p *batchPacer) target() time.Duration {
	// Closer than a fifth is close enough: each further probe may be a refused call, to save a tenth of the time. Between the pace of
	// the rate limit and what the first guess leads to, closer than a half is.
	near := p.right / 5
	if p.right >= limitPace && p.right <= likelySettle*5/4 {
		near = p.right / 2
	}
	if p.right-p.short > near {
		return (p.right + p.short) / 2
	}
	return p.right
}

// busy notes that a batch was refused and returns how long to wait before it is tried again. Refusals count from 0.
func (p *batchPacer) busy(now time.Time, attempt int) time.Duration {
	p.refused = true
	if p.idle {
		return min(maxRetry, firstRetry<<min(attempt, 10))
	}
	since := now.Sub(p.last)
	p.short = max(p.short, since)
	if p.right > p.short {
		return p.right - since
	}
	p.right = 0
	return min(maxRetry, max(likelySettle, since*5/4)-since)
}

// accepted notes that a batch was accepted.
func (p *batchPacer) accepted(now time.Time) {
	since := now.Sub(p.last)
	if !p.idle && (p.right == 0 && p.refused || since < p.right) {
		p.right = since
	}
	p.last, p.refused = now, false
}

// observed notes what a read showed after the last batch: whether the cloud was still at work on it. That is known without a refused
// call.
func (p *batchPacer) observed(now time.Time, settling bool) {
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero() || since >= relearn:
	case settling:
		p.short = max(p.short, since)
		if p.right <= p.short {
			p.right = 0
		}
	case p.right == 0 && since > p.short && since <= likelySettle*5/4:
		p.right = since
	}
}
