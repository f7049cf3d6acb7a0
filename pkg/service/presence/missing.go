package presence

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Missing is since when something of a load balancer is missing that should be there, such as a group. Its zero value says that nothing is.
type Missing struct{ since time.Time }

// Confirm returns what is known after a read by list and by id, and an error until what is missing has been missing for some seconds: a second
// one in the place of one that is there would count towards its quota, or take over what uses it. what is for people.
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

// Empty is an error until nothing was found for some seconds, because one answer proves nothing, and then no more until something is. since is since when
// nothing was found, zero while something was; what names it.
func (m *Absences) Empty(since time.Time, what string) (time.Time, error) {
	if m.DryRun || !since.IsZero() && time.Since(since) >= m.Over {
		return since, nil
	}
	if since.IsZero() {
		since = time.Now()
	}
	return since, &problem.WaitError{Reason: what + " was not found; waiting for a second confirmation", For: m.Over}
}
