package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// surge is how many nodes a rolling replacement replaces at a time.
const surge = 20

// roll replaces nodes in steps: some join, and then as many of the old ones leave.
func (s *storm) roll(steps int) {
	s.t.Helper()
	for range steps {
		s.joins(surge)
		time.Sleep(5 * time.Second)
		s.leaves(surge)
		time.Sleep(5 * time.Second)
	}
}

// TestRollingReplacement: all nodes are replaced, twenty every ten seconds, with and without a new process in the middle of it. Each vServer group is written to
// once per window with all that has changed meanwhile, so that the Services are done when all groups have been written to once more after the last event.
func TestRollingReplacement(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"one process": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t)
				defer func() { s.stop() }()
				s.roll(scaleNodes / surge / 2)
				if restart {
					s.replaceProcess()
				}
				s.roll(scaleNodes/surge - scaleNodes/surge/2)
				last := time.Now()
				calls := s.over()
				s.oncePerWindow(calls)
				took, least := calls[len(calls)-1].Time.Sub(last), scaleServices*time.Minute/groupQuota
				t.Logf("%d writes in %s, the last one %s after the last event; a write on each group takes %s", len(calls), calls[len(calls)-1].Time.Sub(s.began), took, least)
				if float64(took) > 1.1*float64(least) {
					t.Errorf("done %s after the last event, more than 1.1 times the %s that a write on each group takes", took, least)
				}
			})
		})
	}
}

// TestDeadNodesBeforeNewOnes: while every Service waits to take in new nodes in place of others that work, some nodes die. Writes that take those out go first.
func TestDeadNodesBeforeNewOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t)
		defer s.stop()
		s.joins(stormNodes)
		time.Sleep(2 * time.Second)
		died := time.Now()
		s.leaves(stormNodes / 3)
		calls := slices.DeleteFunc(s.over(), func(call emulator.Call) bool {
			return call.Action != replaceServers || !call.Time.After(died.Add(time.Second))
		})
		isOut := func(call emulator.Call) bool {
			for i := range s.gone {
				if strings.Contains(call.Parameters["OldBackendServers"], `"i-`+nodeName(i)+`"`) {
					return true
				}
			}
			return false
		}
		end := 0
		for i, call := range calls {
			if isOut(call) {
				end = i + 1
			}
		}
		before := 0
		for _, call := range calls[:end] {
			if !isOut(call) {
				before++
			}
		}
		t.Logf("of %d writes, the first %d take out dead nodes, but for %d of these", len(calls), end, before)
		if end < 20 || before > 1+end/10 {
			t.Errorf("%d of %d writes before the last dead node was out only take in new ones", before, end)
		}
	})
}
