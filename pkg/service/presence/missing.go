package presence

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/absence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Missing is what answers lacked of a load balancer that should be there, such as a group. Its zero value says that nothing is missing.
type Missing struct{ row absence.Row }

// Confirm returns what is known after a read by list and by id, and an error until what is missing has been missing for some seconds: a
// second one in the place of one that is there would count towards its quota, or take over what uses it. what is for people.
func (m *Absences) Confirm(known Missing, missing bool, what string) (Missing, error) {
	known.row = known.row.Lacking(time.Now(), m.rule())
	if !missing || known.row.Proves(m.rule()) {
		return Missing{}, nil
	}
	return known, &problem.WaitError{Reason: what + "; waiting for a second confirmation", For: m.Over}
}

// Emptiness is what was found empty. Its zero value says that nothing was.
type Emptiness struct {
	row absence.Row
	of  string
}

// Empty is an error until nothing was found for some seconds, because one answer proves nothing, and then no more until something is. what
// names it: that something else was found empty before says nothing of it.
func (m *Absences) Empty(known Emptiness, what string) (Emptiness, error) {
	if known.of != what {
		known = Emptiness{of: what}
	}
	known.row = known.row.Lacking(time.Now(), m.rule())
	if known.row.Proves(m.rule()) {
		return known, nil
	}
	return known, &problem.WaitError{Reason: what + " was not found; waiting for a second confirmation", For: m.Over}
}
