package alicloud

import "time"

// pace says when an action may be called. It counts in the cloud's own windows, as only so a long queue gets all of its
// quota: a third of it may go at once, the rest evenly over the window, so that there is always room for an urgent call soon.
type pace struct {
	quota quota

	window time.Time // the one that is counted
	used   int       // calls in it
	before int       // calls in the window before
	late   int       // calls so late in the window that the cloud may count them in the next one
	// closed is until when the cloud is known to refuse the action.
	closed time.Time
	// careful is until when less than the quota is used.
	careful time.Time
}

const (
	// clockGuard is how far the clocks of this machine and of the cloud may be apart, the way of a call included: so close to
	// the end of a minute a call is counted in both minutes.
	clockGuard = time.Second
	// carefulFor is how long an action that was throttled uses two thirds of its quota only. Others of the account use it,
	// too, or the clocks are further apart than thought.
	carefulFor = 10 * time.Minute
)

// next returns when the next call may be made; not after now means at once.
func (p *pace) next(now time.Time) time.Time {
	if now.Before(p.closed) {
		return p.closed
	}
	current := p.at(now)
	opens := current.window.Add(p.guard())
	switch allowance := p.allowance(now); {
	case current.used >= allowance:
		return opens.Add(p.quota.window)
	case now.Before(opens) && current.before+current.used < allowance && current.slot(now) == 0:
		return now
	}
	return opens.Add(current.slot(now))
}

// take counts a call.
func (p *pace) take(now time.Time) {
	*p = p.at(now)
	p.used++
	if !now.Before(p.window.Add(p.quota.window - p.guard())) {
		p.late++
	}
}

// at returns the pace with the counts of the window that now is in.
func (p *pace) at(now time.Time) pace {
	rolled := *p
	rolled.window = now.Truncate(p.quota.window)
	switch rolled.window.Sub(p.window) {
	case 0:
	case p.quota.window:
		rolled.before, rolled.used, rolled.late = p.used, p.late, 0
	default:
		rolled.before, rolled.used, rolled.late = 0, 0, 0
	}
	return rolled
}

// slot is how long after the window's opening the next call in it may be made.
func (p *pace) slot(now time.Time) time.Duration {
	allowance := p.allowance(now)
	burst := max(1, allowance/3)
	if now.Before(p.careful) {
		burst = 1
	}
	if p.used < burst {
		return 0
	}
	span := p.quota.window - 2*p.guard()
	return span * time.Duration(p.used-burst+1) / time.Duration(allowance-burst+1)
}

// allowance is how many calls a window takes. Windows of a second are too short to be sure of: a third stays unused.
func (p *pace) allowance(now time.Time) int {
	if now.Before(p.careful) || p.quota.window < time.Minute {
		return max(1, p.quota.calls*2/3)
	}
	return p.quota.calls
}

func (p *pace) guard() time.Duration {
	if p.quota.window < time.Minute {
		return 0
	}
	return clockGuard
}
