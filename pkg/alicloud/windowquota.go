package alicloud

import (
	"math"
	"time"
)

// windowQuota says when an action may be called. It counts calls in the cloud's own fixed windows, because only then can a long queue use
// the whole quota. What fits into the window goes at once, but for a reserve. Of more, a third of the quota goes at once, and the rest is
// spread evenly over the window, so that an urgent call always finds room soon.
type windowQuota struct {
	quota quota

	window time.Time // start of the window that used counts
	used   int       // calls in the window
	before int       // calls in the previous window
	late   int       // calls so late in the window that the cloud may count them in the next one
	last   time.Time // when the last of them was made
	// closedUntil is the end of the time in which the cloud is known to refuse the action.
	closedUntil time.Time
	// share is how many calls of the quota are ours in the window that begins at sharedAt, where others of the account use it, too. It grows
	// from there. proven is how many of them were ours before others had a burst of calls.
	share, proven float64
	sharedAt      time.Time
	// phase, from 0 to 1, is another one in each manager, so that none of them always tries first for what is left in a window.
	phase float64
}

const (
	// clockGuard is how far the clocks of this machine and of the cloud may be apart, the travel time of a call included. A
	// call that close to the end of a minute counts in both minutes.
	clockGuard = time.Second
	// What is ours of a quota that others of the account use, too, is found as TCP finds it: throttling lowers it by a factor, and each window
	// without adds the same to everybody's, so that callers who throttle one another come to equal shares. Ours is what the cloud let through
	// in the window, less the part for whoever comes next. One window proves little, so that it is at least half of what it was.
	mostLowered, leastLowered = 0.5, 0.85
	// reserve is which part of a window does not go at once, and urgentPause after which time an urgent call may take a place of it.
	reserve     = 9
	urgentPause = time.Second
	// othersRemembered is how long after a refusal less goes at once, also once all of the quota is ours again: the others may come back, and
	// what all send at once closes the action for everybody until the window ends.
	othersRemembered = time.Hour
	// growth is what the first window without throttling adds, as a part of the quota. Each further one adds twice as much as the one before,
	// so that five windows bring back all of it when the others have left.
	growth = 1.0 / 45
	// trial is the part at the end of the window in which we try for what has been added. If that is too much, the action is closed only until
	// the window ends, and nothing urgent waits for long.
	trial = 1.0 / 20
	// leastShare is the smallest share, as a part of the quota, and in calls: somebody else may use up each window in its first second, and a
	// quota that is only guessed may be far smaller.
	leastShare, leastCalls = 0.1, 30
	// maxReopenJitter spreads the callers of one account over the first seconds of the new window. Without it, every cluster
	// of the account calls at the same moment and throttles the others again.
	maxReopenJitter = 3 * time.Second
)

// next returns when the next of the calls that wait may be made, so many of which are urgent. A time that is not after now means at once.
func (q *windowQuota) next(now time.Time, waiting, urgent int) time.Time {
	if q.closed(now) {
		return q.closedUntil
	}
	current := q.at(now)
	opens := current.window.Add(q.guard())
	switch allowance := q.allowance(now); {
	case current.used >= allowance:
		return opens.Add(q.quota.window)
	case now.Before(opens) && current.before+current.used < allowance && current.slot(now, waiting, urgent) == 0:
		return now
	}
	return opens.Add(current.slot(now, waiting, urgent))
}

// take counts a call.
func (q *windowQuota) take(now time.Time) {
	*q = q.at(now)
	q.used++
	q.last = now
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

// slot is how long after the start of the window the next of the calls that wait may be made in it.
func (q *windowQuota) slot(now time.Time, waiting, urgent int) time.Duration {
	span := float64(q.quota.window - 2*q.guard())
	if !q.shares(now) {
		return q.slotOfOwn(now, span, waiting, urgent)
	}
	allowance := q.allowance(now)
	proven, _ := q.shareAt(now)
	even := max(1, min(allowance, int(proven+q.phase)))
	tried := float64(q.quota.window) * trial
	if q.used < even {
		return time.Duration((span - tried) * float64(q.used) / float64(even))
	}
	return time.Duration(span - tried + tried*(float64(q.used-even)+q.phase)/float64(max(1, allowance-even)))
}

// slotOfOwn is the slot where nobody else uses the quota.
func (q *windowQuota) slotOfOwn(now time.Time, span float64, waiting, urgent int) time.Duration {
	allowance := q.allowance(now)
	third := max(1, allowance/3)
	atOnce, first := allowance-allowance/reserve, third // how many go at once: all that wait, or the first of more
	switch {
	case q.quota.window < time.Minute: // the cloud's second may begin in the middle of ours
		atOnce, first = third, 1
	case now.Sub(q.closedUntil) < othersRemembered:
		atOnce = third
	}
	if q.used+waiting <= atOnce {
		return 0
	}
	even := time.Duration(span * float64(max(0, q.used-first+1)) / float64(allowance-first+1))
	if 0 < urgent && urgent <= allowance-q.used {
		return min(even, max(0, q.last.Sub(q.window)-q.guard())+urgentPause)
	}
	return even
}

// allowance is the number of calls per window. A window of a second is too short to be hit exactly: a third stays unused.
func (q *windowQuota) allowance(now time.Time) int {
	most := q.quota.calls
	if q.quota.window < time.Minute {
		most = q.quota.calls * 2 / 3
	}
	_, share := q.shareAt(now)
	return max(1, min(most, int(share+q.phase)))
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

// shareAt returns how many calls of the quota are ours at a time, and how many of them were so before we tried for more. A window without
// throttling ends a burst of others' calls. After the clock was set back, nothing is known of the share.
func (q *windowQuota) shareAt(now time.Time) (proven, share float64) {
	all := float64(q.quota.calls)
	elapsed := now.Truncate(q.quota.window).Sub(q.sharedAt)
	if q.share == 0 || elapsed < 0 {
		return all, all
	}
	windows := elapsed / q.quota.window
	proven = q.share
	if windows > 1 {
		proven = max(q.share, q.proven)
	}
	return proven, min(all, proven+growth*all*(math.Exp2(float64(windows))-1))
}

// shares reports whether others of the account use the quota, too.
func (q *windowQuota) shares(now time.Time) bool {
	_, share := q.shareAt(now)
	return share < float64(q.quota.calls)
}

// lower makes our share of the quota smaller, because the cloud refused a call in this window: once, however many it refused. If less than
// half of the share went through, others had a burst of calls, which says nothing about the time after it.
func (q *windowQuota) lower(now time.Time, phase float64) {
	window := now.Truncate(q.quota.window)
	if q.share != 0 && q.sharedAt.Equal(window) {
		return
	}
	all, current := float64(q.quota.calls), q.at(now)
	if q.proven == 0 || !q.shares(now) {
		q.proven = leastLowered * all
	}
	_, share := q.shareAt(now)
	through := float64(max(current.used-1, 0))
	if through < share*mostLowered {
		share *= mostLowered
	} else {
		q.proven = leastLowered * min(through, share)
		share = q.proven
	}
	q.share, q.sharedAt, q.phase = max(share, min(leastShare*all, leastCalls)), window, phase
}

// within reports whether end is in the future and no further away than longest.
func within(now, end time.Time, longest time.Duration) bool {
	left := end.Sub(now)
	return left > 0 && left <= longest
}
