package slb

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestNodesAtOnce: a tenth of all nodes joins at once, and leaves at once, with and without a new process in the middle of it. Each vServer group is
// written to once for all of them, in the time that the quota of these writes takes.
func TestNodesAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		event   func(*storm)
		restart bool
	}{
		{"join", func(s *storm) { s.joins(stormNodes) }, false},
		{"leave", func(s *storm) { s.leaves(stormNodes) }, false},
		{"join and restart", func(s *storm) { s.joins(stormNodes) }, true},
		{"leave and restart", func(s *storm) { s.leaves(stormNodes) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t)
				defer func() { s.stop() }()
				test.event(s)
				if test.restart {
					time.Sleep(20 * time.Second)
					s.replaceProcess()
				}
				calls := s.over()
				most := scaleServices * 11 / 10
				if test.restart {
					most = 2 * scaleServices // a new process has a pass over each Service, which may balance its nodes once more
				}
				if len(calls) > most {
					t.Errorf("%d writes for %d nodes, want %d at most", len(calls), stormNodes, most)
				}
				s.oncePerWindow(calls)
				s.inTime(calls)
			})
		})
	}
}
