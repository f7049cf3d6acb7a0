package presence

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Missing is since when something of a load balancer is missing that should be there, such as a group. Its zero value says that nothing is.
type Missing struct{ since time.Time }

// Confirm returns what is known after a read by list and by id, and an error until what is missing has been missing for some seconds: a
// second one in the place of one that is there would count towards its quota, or take over what uses it. what is for people.
func (m *Absences) Confirm(known Missing, missing bool, what string) (Missing, error) {
	confirmed := !known.since.IsZero() && time.Since(known.since) >= m.Over
	if !missing || confirmed {
		return Missing{}, nil
	}
	if known.since.IsZero() {
		known.since = time.Now()
	}
	return known, &problem.WaitError{Reason: what + "; waiting for a second confirmation", For: m.Over}
}

// Emptiness is since when something was found empty, and what that is. Its zero value says that nothing was.
type Emptiness struct {
	since time.Time
	of    string
}

// Empty is an error until nothing was found for some seconds, because one answer proves nothing, and then no more until something is. what
// names it: that something else was found empty before says nothing of it.
func (m *Absences) Empty(known Emptiness, what string) (Emptiness, error) {
	if known.of != what {
		known = Emptiness{of: what}
	}
	if !known.since.IsZero() && time.Since(known.since) >= m.Over {
		return known, nil
	}
	if known.since.IsZero() {
		known.since = time.Now()
	}
	return known, &problem.WaitError{Reason: what + " was not found; waiting for a second confirmation", For: m.Over}
}
