package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
)

// surge is how many nodes a rolling replacement replaces at a time.
const surge = 20

// agedShare is that of the rate limiter, in pkg/alicloud.
const agedShare = 16

// TestRollingReplacement: all nodes are replaced, twenty every ten seconds, with and without a new process in the middle of it. Each
// vServer group is written to once per window with all that has changed meanwhile, so that the Services are done when all groups have been
// written to once more after the last event.
func TestRollingReplacement(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	teststorm.WithRestart(t, func(t *testing.T, restart bool) {
		s := newStorm(t)
		defer func() { s.stop() }()
		s.Roll(scaleNodes/surge/2, surge)
		if restart {
			s.replaceProcess()
		}
		s.Roll(scaleNodes/surge-scaleNodes/surge/2, surge)
		last := time.Now()
		calls := s.over()
		s.OncePerWindow(calls)
		s.DoneSince(last, calls, scaleServices)
	})
}

// TestDeadNodesBeforeNewOnes: some Services have waited for half a minute to take in new nodes in place of others that work, which makes
// them as urgent as a removal that has not waited. Now nodes die behind Services that do not wait. The writes that take out the dead nodes
// go first all the same, but for one call in agedShare: so many go to the one that has waited longest, even while something urgent waits,
// so that nothing waits for ever.
func TestDeadNodesBeforeNewOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t)
		defer s.stop()
		s.Join(stormNodes)
		time.Sleep(35 * time.Second)
		died := time.Now()
		s.Leave(stormNodes / 3)
		calls := slices.DeleteFunc(s.over(), func(call emulator.Call) bool {
			return call.Action != replaceServers && call.Action != removeServers || call.Time.Before(died)
		})
		gone := s.Gone()
		out := slices.DeleteFunc(slices.Clone(calls), func(call emulator.Call) bool { return !s.TakesOut(call, gone) })
		if len(out) < 20 {
			t.Fatalf("%d writes took out dead nodes, too few to say anything", len(out))
		}
		last, before := out[len(out)-1].Time, 0
		for _, call := range calls {
			if call.Time.Before(last) && !s.TakesOut(call, gone) { // calls of one moment have no order
				before++
			}
		}
		t.Logf("%d writes took out dead nodes, the last one %s after these died; %d of %d others went before it", len(out), last.Sub(died),
			before, len(calls)-len(out))
		if most := (before + len(out) + agedShare - 1) / agedShare; before > most {
			t.Errorf("%d writes before the last dead node was out only take in new ones, of %d; want %d at most", before, before+len(out), most)
		}
	})
}
