package vpcroute

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// What it takes to prove that an instance is gone. The cloud's list of instances lags, may be cut short, and leaves out without a
// word what the key may not see.
const (
	goneAnswers = 3
	goneOver    = time.Minute
	// lookupInterval is the time between two answers.
	lookupInterval = goneOver / (goneAnswers - 1)
	// goneValid is how long an answer counts. Answers further apart are not consecutive.
	goneValid = 5 * time.Minute
)

// absences counts, for instances that the cloud did not show, the answers in a row that lacked them.
type absences map[string]absence

type absence struct {
	first, last time.Time
	answers     int
}

// note takes an answer in: the instances asked for, and those that it showed.
func (a absences) note(asked, shown sets.Set[string], now time.Time) {
	for id := range asked {
		before := a[id]
		switch {
		case shown.Has(id):
			delete(a, id)
		case before.answers == 0 || now.Sub(before.last) >= goneValid:
			a[id] = absence{first: now, last: now, answers: 1}
		default:
			a[id] = absence{first: before.first, last: now, answers: before.answers + 1}
		}
	}
}

// gone reports whether the instance is proven gone.
func (a absences) gone(id string, now time.Time) bool {
	seen := a[id]
	return seen.answers >= goneAnswers && seen.last.Sub(seen.first) >= goneOver && now.Sub(seen.last) < goneValid
}

// forget drops what is too old to count.
func (a absences) forget(now time.Time) {
	for id, seen := range a {
		if now.Sub(seen.last) >= goneValid {
			delete(a, id)
		}
	}
}
