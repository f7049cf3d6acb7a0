package nlb

import (
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
)

// surge is how many nodes a rolling replacement replaces at a time, rollSteps how many times it does.
const surge, rollSteps = 10, 8

// rollWrites is how many times all server groups can be written to until a rolling replacement is done after its last event. With CLBs, which replace backend servers
// in one call, it is once. Here servers that leave and servers that come are calls of their own, and a group gets those that it lacks in several calls.
const rollWrites = 2

// TestRollingReplacement: more than half of the nodes are replaced, ten every ten seconds, with and without a new process in the middle of it.
func TestRollingReplacement(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	teststorm.WithRestart(t, func(t *testing.T, restart bool) {
		s := newManyStorm(t)
		s.Roll(rollSteps/2, surge)
		if restart {
			s.replaceProcess()
		}
		s.Roll(rollSteps-rollSteps/2, surge)
		last := time.Now()
		calls := s.over(s.Count())
		s.DoneSince(last, calls, rollWrites*scaleGroups)
	})
}
