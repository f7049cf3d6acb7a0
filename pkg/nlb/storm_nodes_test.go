package nlb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// stormRestart is how long after the beginning of a storm another process takes over.
const stormRestart = 20 * time.Second

// TestNodesAtOnce: a tenth of all nodes joins at once, or a fifth of them leaves, which concerns nearly all server groups, with and without
// a new process in the middle of it.
func TestNodesAtOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, test := range []struct {
		name    string
		event   func(*manyStorm)
		restart bool
	}{
		{"join", func(s *manyStorm) { s.Join(stormNodes) }, false},
		{"join and restart", func(s *manyStorm) { s.Join(stormNodes) }, true},
		{"leave", func(s *manyStorm) { s.Leave(2 * stormNodes) }, false},
		{"leave and restart", func(s *manyStorm) { s.Leave(2 * stormNodes) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newManyStorm(t)
				test.event(s)
				if test.restart {
					time.Sleep(stormRestart)
					s.replaceProcess()
				}
				calls := s.over(s.Count())
				s.OncePerWindow(calls)
				if gone := s.Gone(); len(gone) > 0 {
					s.OutInTime(calls, gone) // some Services balance their nodes afterwards
				} else {
					s.AllInTime(calls)
				}
			})
		})
	}
}
