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
	// carefulUntil is the end of the time in which less than the quota is used.
	carefulUntil time.Time
}

const (
	// clockGuard is how far the clocks of this machine and of the cloud may be apart, the travel time of a call included. A
	// call that close to the end of a minute counts in both minutes.
	clockGuard = time.Second
	// carefulFor is how long an action uses only two thirds of its quota after it was throttled: other callers of the account
	// use the quota too, or the clocks are further apart than assumed.
	carefulFor = 10 * time.Minute
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
	if q.careful(now) {
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
	if q.careful(now) || q.quota.window < time.Minute {
		return max(1, q.quota.calls*2/3)
	}
	return q.quota.calls
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

// careful reports whether less than the quota is used. The same holds for a clock that was set back.
func (q *windowQuota) careful(now time.Time) bool {
	return within(now, q.carefulUntil, carefulFor)
}

// within reports whether end is in the future and no further away than longest.
func within(now, end time.Time, longest time.Duration) bool {
	left := end.Sub(now)
	return left > 0 && left <= longest
}
