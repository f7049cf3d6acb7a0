package provider

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// restSeeds are those from which [TestGroupsRestAfterDeletions] decides, and more with -soak.groups.seed.
var restSeeds = []uint64{1, 2, 3, 4}

// TestGroupsRestAfterDeletions churns Services of groups, deletes some of them, and waits for one period of drift detection. Nothing is
// written for four hours after that, and the Services that stay have what they ask for.
func TestGroupsRestAfterDeletions(t *testing.T) {
	t.Parallel()
	seeds := restSeeds
	if *groupsSeed != 0 {
		seeds = []uint64{*groupsSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newGroupSoak(t, seed)
				for range 40 {
					s.one()
					s.let(time.Duration(s.random.Int64N(int64(8 * time.Second))))
				}
				s.server.ClearFaults()
				s.let(30 * time.Minute)
				for _, svc := range s.services() {
					if s.random.IntN(2) == 0 {
						s.say("remove %s", svc.Name)
						s.remove(svc.Name)
						s.let(time.Duration(s.random.Int64N(int64(time.Minute))))
					}
				}
				s.let(13 * time.Minute)
				before := s.server.Last()
				s.let(4 * time.Hour)
				if s.writes(before) > 0 {
					t.Errorf("seed %d: writes\n%s\n%s", seed, strings.Join(s.written(before), "\n"), strings.Join(s.log, "\n"))
				}
				s.compare()
				s.stop()
			})
		})
	}
}

// let lets time go by without a check.
func (s *groupSoak) let(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(5*time.Second, time.Until(end)))
		s.collect()
	}
}
