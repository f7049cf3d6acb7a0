package nlb

import (
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
)

// surge is how many nodes a rolling replacement replaces at a time.
const surge = 10

// TestRollingReplacement: all nodes are replaced, ten every ten seconds, with and without a new process in the middle of it. Servers leave
// each server group once per window, all of them that have left meanwhile, and others come at the same time in calls of their own quota:
// the Services are done when all groups have been written to once more after the last event.
func TestRollingReplacement(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	teststorm.WithRestart(t, func(t *testing.T, restart bool) {
		s := newManyStorm(t)
		s.Roll(scaleNodes/surge/2, surge)
		if restart {
			s.replaceProcess()
		}
		s.Roll(scaleNodes/surge-scaleNodes/surge/2, surge)
		last := time.Now()
		calls := s.over(s.Count())
		s.OncePerWindow(calls)
		s.DoneSince(last, calls, scaleGroups)
	})
}
