package vpcroute

import "time"

// Bounds of the pace of writes.
const (
	// firstRetry and maxRetry bound the wait after the cloud said that it is busy. It usually is so for a second or two.
	firstRetry = 50 * time.Millisecond
	maxRetry   = 5 * time.Second
	// relearn is after how long without writes the learned time is dropped: the cloud may be faster by then.
	relearn = 2 * time.Minute
)

// pace learns how long the cloud needs between two batches, so that it is neither asked in vain nor left idle. It keeps
// the longest time that was too short and the shortest that was enough, and tries the middle until they are close.
type pace struct {
	last         time.Time // when the last batch was accepted
	short, right time.Duration
	refused      bool // since the last batch was accepted
}

// delay is how long to wait before the next batch.
func (p *pace) delay(now time.Time) time.Duration {
	since := now.Sub(p.last)
	if since >= relearn {
		p.short, p.right = 0, 0
	}
	return max(0, p.target()-since)
}

func (p *pace) target() time.Duration {
	// Closer than a fifth is close enough: each further probe may be a refused call, to save a tenth of the time.
	if p.right-p.short > p.right/5 {
		return (p.right + p.short) / 2
	}
	return p.right
}

// busy notes that a batch was refused and returns how long to wait before it is tried again.
func (p *pace) busy(now time.Time, attempt int) time.Duration {
	since := now.Sub(p.last)
	if since < relearn {
		p.short, p.refused = max(p.short, since), true
		if p.right <= p.short {
			p.right = 0
		}
	}
	wait := firstRetry
	for range min(attempt, 20) {
		wait *= 2
	}
	if p.right > since {
		wait = min(wait, p.right-since)
	}
	return min(wait, maxRetry)
}

// accepted notes that a batch was accepted.
func (p *pace) accepted(now time.Time) {
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero() || since >= relearn:
		p.short, p.right = 0, 0
	case p.right == 0 && p.refused, since < p.right:
		// An idle time in between says nothing about the cloud; twice what was too short is a safe first guess.
		p.right = min(since, 2*p.short+firstRetry)
	}
	p.last, p.refused = now, false
}
