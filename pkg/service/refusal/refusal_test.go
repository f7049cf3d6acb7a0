package refusal

import (
	"errors"
	"testing"
	"time"
)

var errRefused = errors.New("refused")

// TestRefusedCallIsTriedAgain: at intervals that double up to a limit, and not before.
func TestRefusedCallIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pause Pause
		want  []time.Duration
	}{
		"at once after the first refusal": {
			Pause{Least: time.Minute, Longest: 8 * time.Minute},
			[]time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 8 * time.Minute},
		},
		"always after the same time": {
			Pause{First: time.Minute, Least: time.Minute, Longest: time.Minute},
			[]time.Duration{time.Minute, time.Minute, time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Refusals[string]
			now := time.Now()
			for _, want := range test.want {
				r.Add("a", errRefused, test.pause, now)
				if want > 0 && !errors.Is(r.Err("a", now.Add(want-time.Second)), errRefused) {
					t.Errorf("tried again before %s", want)
				}
				if now = now.Add(want); r.Err("a", now) != nil {
					t.Errorf("not tried again after %s", want)
				}
			}
		})
	}
}

// TestRefusalsOfOthers: a refusal says nothing about other calls, nor about the same one after it was accepted or may be.
func TestRefusalsOfOthers(t *testing.T) {
	t.Parallel()
	var r Refusals[string]
	pause, now := Pause{Least: time.Minute, Longest: time.Hour}, time.Now()
	again := func(what string) {
		r.Add(what, errRefused, pause, now)
		r.Add(what, errRefused, pause, now)
	}
	again("a")
	again("b")
	if r.Err("c", now) != nil {
		t.Error("another call waits, too")
	}
	r.Drop("a")
	r.Add("a", errRefused, pause, now)
	if r.Err("a", now) != nil {
		t.Error("a refusal after a success waits as if it was not the first")
	}
	r.DropFunc(func(what string, err error) bool { return what == "b" && errors.Is(err, errRefused) })
	if r.Err("b", now) != nil {
		t.Error("what may be accepted again waits")
	}
}

// TestRefusalsAreForgotten: what nobody asks for any more takes no memory.
func TestRefusalsAreForgotten(t *testing.T) {
	t.Parallel()
	var r Refusals[int]
	pause, now := Pause{Least: time.Minute, Longest: time.Hour}, time.Now()
	for i := range 100 {
		r.Add(i, errRefused, pause, now)
		now = now.Add(2 * time.Hour)
	}
	if len(r.byKey) != 1 {
		t.Errorf("%d refusals are remembered", len(r.byKey))
	}
}
