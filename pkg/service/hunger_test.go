package service

import (
	"testing"
	"time"
)

// TestHunger: others give up a node for a Service that has had none for half a minute. If the cloud refuses that one as well, they wait
// twice as long, up to an hour.
func TestHunger(t *testing.T) {
	t.Parallel()
	type step struct {
		after         time.Duration
		starves, long bool
	}
	again := func(wait time.Duration) []step { // what others give up is refused
		return []step{{wait, true, true}, {time.Second, false, false}, {time.Second, true, false}, {wait, true, false}}
	}
	var often []step
	for wait := starvesWait; wait < starvesMost; wait *= 2 {
		often = append(often, step{wait, true, true}, step{time.Second, false, false}, step{time.Second, true, false})
	}
	for name, steps := range map[string][]step{
		"at first": {{0, true, false}, {starvesWait - time.Second, true, false}, {time.Second, true, true},
			{time.Hour, true, true}},
		"it has a node":         {{0, false, false}, {time.Hour, false, false}},
		"it gets one meanwhile": {{0, true, false}, {time.Second, false, false}, {time.Hour, false, false}},
		"in vain":               append([]step{{0, true, false}}, append(again(starvesWait), step{starvesWait, true, true})...),
		"in vain, and is fed again": append([]step{{0, true, false}},
			append(again(starvesWait), step{0, false, false}, step{fedFor, true, false}, step{starvesWait, true, true})...),
		"in vain many times": append([]step{{0, true, false}},
			append(often, step{starvesMost - time.Second, true, false}, step{time.Second, true, true})...),
	} {
		h, now := hunger{}, time.Unix(1e9, 0)
		for i, step := range steps {
			now = now.Add(step.after)
			if h = h.next(step.starves, now); h.long(now) != step.long {
				t.Errorf("%s: step %d: long %v", name, i, !step.long)
			}
		}
		if h = h.next(false, now).next(false, now.Add(fedFor)); h != (hunger{}) {
			t.Errorf("%s: it is never forgotten: %+v", name, h)
		}
	}
}
