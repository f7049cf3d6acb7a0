package teststorm

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// window is one kind of write in one window of its quota.
type window struct {
	action string
	began  time.Time
}

const (
	// guard is how long after a window begins, and before it ends, the rate limiter of pkg/alicloud makes no calls, and moment how late a call
	// is that waited until then.
	guard, moment = time.Second, 10 * time.Millisecond
	// opens is how long after a window begins the calls are made at the latest that have waited for it: after a refusal, the limiter waits up
	// to three seconds.
	opens = 3 * time.Second
)

// few is which part of a quota may be written again although others wait: these may have begun to wait later in the window. A pass also
// writes to the groups of its Service one after the other: the second one waits for the first one's turn.
const few = 50

// OncePerWindow checks that no process writes to a group a second time in a window whose quota is used up while other groups wait, for
// which the window then has no call left: groups take turns, and one call has all that has changed meanwhile. What a process wrote before
// it was replaced, the next one does not know. At least one window must be used up, and have calls that wait for the next one.
func (s *Storm) OncePerWindow(calls []emulator.Call) {
	s.tb.Helper()
	windows := map[window][]emulator.Call{}
	for _, call := range calls {
		in := window{call.Action, call.Time.Truncate(time.Minute)}
		windows[in] = append(windows[in], call)
	}
	pressed := 0
	for in, made := range windows {
		next := windows[window{in.action, in.began.Add(time.Minute)}]
		if !s.full(made) || len(next) == 0 || next[0].Time.Sub(in.began) > time.Minute+opens {
			continue
		}
		pressed++
		again, waited := s.again(made), s.waited(calls, made, next)
		early := overtaken(again, waited)
		s.tb.Logf("%s at %s: %d calls, %d groups in their second turn, %d wait for the next window, of which %d waited before that",
			in.action, in.began.Format("15:04"), len(made), len(again), len(waited), early)
		if early > s.Quota/few {
			s.tb.Errorf("%s at %s: %v have a second turn, while %v wait for the next window", in.action, in.began.Format("15:04"), again, waited)
		}
	}
	if pressed == 0 {
		s.tb.Error("no window was used up: this says nothing about how often a group is written to in one")
	}
}

// full reports whether the calls of a window use up its quota.
func (s *Storm) full(made []emulator.Call) bool {
	return len(made) >= s.Quota || slices.ContainsFunc(made, throttled)
}

// turn is a call for a group, and when it was made, or when it began to wait.
type turn struct {
	group string
	at    time.Time
}

// String implements fmt.Stringer.
func (t turn) String() string { return t.group + " " + t.at.Format("04:05.0") }

// overtaken counts the groups that already waited when others, one for each of them, had their second turn.
func overtaken(again, waited []turn) int {
	slices.SortFunc(waited, func(a, b turn) int { return a.at.Compare(b.at) })
	count := 0
	for _, second := range again {
		if count < len(waited) && waited[count].at.Before(second.at) {
			count++
		}
	}
	return count
}

// again returns the groups to which a process writes a second time in a window, by a call that has waited.
func (s *Storm) again(made []emulator.Call) []turn {
	var again []turn
	seen, used := map[bool]sets.Set[string]{false: {}, true: {}}, map[bool]int{}
	for _, call := range made {
		later := !s.replaced.IsZero() && call.Time.After(s.replaced)
		group := call.Parameters[s.Group]
		if call.Code == "" && seen[later].Has(group) && s.queued(call, used[later]) {
			again = append(again, turn{group, call.Time})
		}
		used[later]++
		if call.Code == "" {
			seen[later].Insert(group)
		}
	}
	return again
}

// queued reports whether a call waited, which a process made in a window after so many others: it was made as soon as the limiter lets that
// be. A third of a quota may be used at once, the others are spread over the window.
func (s *Storm) queued(call emulator.Call, used int) bool {
	burst := s.Quota / 3
	slot := (time.Minute - 2*guard) * time.Duration(max(0, used-burst+1)) / time.Duration(s.Quota-burst+1)
	return call.Time.Sub(call.Time.Truncate(time.Minute)) <= guard+slot+moment
}

// waited returns the groups that are written to at the moment at which the next window opens, and were not in this one. They wait since the
// last other call for them: what is dead leaves a group before others come.
func (s *Storm) waited(calls, made, next []emulator.Call) []turn {
	var waited []turn
	for _, call := range next {
		group := call.Parameters[s.Group]
		written := func(before emulator.Call) bool { return before.Code == "" && before.Parameters[s.Group] == group }
		if !call.Time.Equal(next[0].Time) || slices.ContainsFunc(made, written) {
			continue
		}
		since := time.Time{}
		for _, before := range calls {
			if before.Code == "" && before.Time.Before(call.Time) && before.Parameters[s.Group] == group {
				since = before.Time
			}
		}
		waited = append(waited, turn{group, since})
	}
	return waited
}

// throttled reports whether a call was refused because the rate limit is used up.
func throttled(call emulator.Call) bool { return strings.HasPrefix(call.Code, "Throttling") }
