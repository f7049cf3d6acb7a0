package nlb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// surge is how many nodes a rolling replacement replaces at a time, rollSteps how many times it does.
const surge, rollSteps = 10, 8

// rollWrites is how many times all server groups can be written to until a rolling replacement is done after its last event. With CLBs, which replace backend servers
// in one call, it is once. Here servers that leave and servers that come are calls of their own, and a group gets those that it lacks in several calls.
const rollWrites = 2

// roll replaces nodes in steps: some join, and then as many of the old ones leave.
func (s *manyStorm) roll(steps int) {
	s.t.Helper()
	for range steps {
		s.Join(surge)
		time.Sleep(5 * time.Second)
		s.Leave(surge)
		time.Sleep(5 * time.Second)
	}
}

// TestRollingReplacement: more than half of the nodes are replaced, ten every ten seconds, with and without a new process in the middle of it.
func TestRollingReplacement(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, restart := range map[string]bool{"one process": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newManyStorm(t)
				s.roll(rollSteps / 2)
				if restart {
					s.replaceProcess()
				}
				s.roll(rollSteps - rollSteps/2)
				last := time.Now()
				calls := s.over(s.Count())
				s.DoneSince(last, calls, rollWrites*scaleGroups)
			})
		})
	}
}
