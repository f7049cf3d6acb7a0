package alicloud

import "time"

// windowQuota says when an action may be called. It counts calls in the cloud's own fixed windows, because only then can a
// long queue use the whole quota: a third of it may go at once, the rest is spread evenly over the window, so that an urgent
// call always finds room soon.
type windowQuota struct {
	quota quota

	window time.Time // start of the window that used counts
	used   int       // calls in the window
	before int       // calls in the previous window
	late   int       // calls so late in the window that the cloud may count them in the next one
	// closedUntil is the end of the time in which the cloud is known to refuse the action.
	closedUntil time.Time
	// share is how many calls of the quota are ours in the window that begins at sharedAt, where others of the account use it, too. It grows from there.
	share    float64
	sharedAt time.Time
}

const (
	// clockGuard is how far the clocks of this machine and of the cloud may be apart, the travel time of a call included. A
	// call that close to the end of a minute counts in both minutes.
	clockGuard = time.Second
	// What is ours of a quota that others of the account use, too, is found as TCP finds it: throttling lowers it by a factor, and each window without
	// adds a constant, so that callers who throttle one another come to equal shares. The factor follows what the cloud let through: that was ours in this
	// window. One window proves little, so that it is at least half, and some of it is left to whoever comes next.
	mostLowered, leastLowered = 0.5, 0.9
	// growth is what a window adds, as a part of the quota. With so little, a shared quota is used up only in the last seconds of its window, and whatever is
	// urgent waits for no longer than these.
	growth = 1.0 / 45
	// leastShare is the smallest share, as a part of the quota: somebody else may use up each window in its first second.
	leastShare = 0.1
	// maxReopenJitter spreads the callers of one account over the first seconds of the new window. Without it, every cluster
	// of the account calls at the same moment and throttles the others again.
	maxReopenJitter = 3 * time.Second
)

// next returns when the next call may be made. A time that is not after now means at once.
func (q *windowQuota) next(now time.Time) time.Time {
	if q.closed(now) {
		return q.closedUntil
	}
	current := q.at(now)
	opens := current.window.Add(q.guard())
	switch allowance := q.allowance(now); {
	case current.used >= allowance:
		return opens.Add(q.quota.window)
	case now.Before(opens) && current.before+current.used < allowance && current.slot(now) == 0:
		return now
	}
	return opens.Add(current.slot(now))
}

// take counts a call.
func (q *windowQuota) take(now time.Time) {
	*q = q.at(now)
	q.used++
	if !now.Before(q.window.Add(q.quota.window - q.guard())) {
		q.late++
	}
}

// at returns q with the counts of the window that contains now.
func (q *windowQuota) at(now time.Time) windowQuota {
	rolled := *q
	rolled.window = now.Truncate(q.quota.window)
	switch rolled.window.Sub(q.window) {
	case 0:
	case q.quota.window:
		rolled.before, rolled.used, rolled.late = q.used, q.late, 0
	default:
		rolled.before, rolled.used, rolled.late = 0, 0, 0
	}
	return rolled
}

// slot is how long after the start of the window the next call in it may be made.
func (q *windowQuota) slot(now time.Time) time.Duration {
	allowance := q.allowance(now)
	burst := max(1, allowance/3)
	if q.shares(now) {
		burst = 1
	}
	if q.used < burst {
		return 0
	}
	span := q.quota.window - 2*q.guard()
	return span * time.Duration(q.used-burst+1) / time.Duration(allowance-burst+1)
}

// allowance is the number of calls per window. A window of a second is too short to be hit exactly: a third stays unused.
func (q *windowQuota) allowance(now time.Time) int {
	most := q.quota.calls
	if q.quota.window < time.Minute {
		most = q.quota.calls * 2 / 3
	}
	return max(1, min(most, int(q.shareAt(now))))
}

func (q *windowQuota) guard() time.Duration {
	if q.quota.window < time.Minute {
		return 0
	}
	return clockGuard
}

// refused closes the action until its next window begins, because the cloud refuses every call before.
func (q *windowQuota) refused(now time.Time, jitter time.Duration) {
	q.closedUntil = now.Truncate(q.quota.window).Add(q.quota.window + jitter)
}

// reopenJitter bounds the jitter of [windowQuota.refused]: less than the window, so that no window is skipped.
func (q *windowQuota) reopenJitter() time.Duration {
	return min(maxReopenJitter, q.quota.window/2)
}

// closed reports whether the action is closed. No action is ever closed for longer than a window and its jitter: an end
// further away was noted before somebody set the clock back, and would close the action for as long as that.
func (q *windowQuota) closed(now time.Time) bool {
	return within(now, q.closedUntil, q.quota.window+q.reopenJitter())
}

// shareAt returns how many calls of the quota are ours at a time. After the clock was set back, nothing is known of it.
func (q *windowQuota) shareAt(now time.Time) float64 {
	all := float64(q.quota.calls)
	elapsed := now.Truncate(q.quota.window).Sub(q.sharedAt)
	if q.share == 0 || elapsed < 0 {
		return all
	}
	windows := float64(elapsed / q.quota.window)
	return min(all, q.share+windows*growth*all)
}

// shares reports whether others of the account use the quota, too.
func (q *windowQuota) shares(now time.Time) bool { return q.shareAt(now) < float64(q.quota.calls) }

// lower makes our share of the quota smaller, because the cloud refused a call in this window: once, however many it refused.
func (q *windowQuota) lower(now time.Time) {
	window := now.Truncate(q.quota.window)
	if q.share != 0 && q.sharedAt.Equal(window) {
		return
	}
	current := q.at(now)
	share := q.shareAt(now)
	through := float64(max(current.used-1, 0))
	share = min(max(through*leastLowered, share*mostLowered), share*leastLowered)
	q.share, q.sharedAt = max(share, float64(q.quota.calls)*leastShare), window
}

// within reports whether end is in the future and no further away than longest.
func within(now, end time.Time, longest time.Duration) bool {
	left := end.Sub(now)
	return left > 0 && left <= longest
}
