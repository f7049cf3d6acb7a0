// Package teststorm has much happen at once to the manager of a load balancer product, and measures what it writes, in a synctest bubble
// over a cloud with published rate limits. Only tests import it.
package teststorm

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
)

// late is how many times as long as the limits force something may take.
const late = 1.1

// Product is how a load balancer product names the changes of backend servers.
type Product struct {
	// Add, Remove and Replace are actions. Replace is empty for a product that has no such action.
	Add, Remove, Replace string
	// Group is the parameter that names the group whose backend servers change, Leaving the one that has those which a replacement takes out.
	Group, Leaving string
	// Quota is how many calls of each action the published limits let through in a minute.
	Quota int
	// Refusals is how many calls may be refused.
	Refusals int
}

func (p *Product) actions() []string {
	return slices.DeleteFunc([]string{p.Add, p.Remove, p.Replace}, func(action string) bool { return action == "" })
}

// Storm measures what is written from a time on.
type Storm struct {
	Product

	Began time.Time

	tb    testing.TB
	cloud *emulatortest.Cloud
	// replaced is when another process went on, zero for never.
	replaced time.Time
}

// Begin begins in the first half of a minute, so that the window of the limits in which it begins is not over at once.
func Begin(tb testing.TB, cloud *emulatortest.Cloud, product Product) *Storm {
	tb.Helper()
	now := time.Now()
	time.Sleep(now.Truncate(time.Minute).Add(time.Minute + 10*time.Second).Sub(now)) //nolint:forbidigo // in a bubble of testing/synctest, a sleep sets the clock
	cloud.NewCalls()
	return &Storm{Product: product, Began: time.Now(), tb: tb, cloud: cloud}
}

// WithRestart runs a test in bubbles of its own: with another process that takes over in the middle and, without -short, with one process.
func WithRestart(t *testing.T, test func(t *testing.T, restart bool)) {
	t.Helper()
	for name, restart := range map[string]bool{"one process": false, "restart": true} {
		if !restart && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, restart) })
		})
	}
}

// Rest lets time pass until no call has arrived for more than a window of the limits.
func Rest(cloud *emulatortest.Cloud) {
	for quiet := 0; quiet < 2; quiet++ {
		before := len(cloud.Unread())
		time.Sleep(65 * time.Second) //nolint:forbidigo // as above
		synctest.Wait()
		if len(cloud.Unread()) > before {
			quiet = -1
		}
	}
}

// Replaced notes that another process has gone on, which knows nothing of the one before it.
func (s *Storm) Replaced() { s.replaced = time.Now() }

// Over waits until nothing is written any more, and returns the calls that changed backend servers. No more may have been
// refused than [Product] says, but for the rate limit in the window in which another process went on.
func (s *Storm) Over() []emulator.Call {
	s.tb.Helper()
	Rest(s.cloud)
	calls := s.cloud.NewCalls()
	refused := slices.DeleteFunc(slices.Clone(calls), func(call emulator.Call) bool {
		unknown := !s.replaced.IsZero() && throttled(call) // a new process does not know what the one before it has used
		return call.Code == "" || unknown || !slices.Contains(s.actions(), call.Action)
	})
	if len(refused) > 0 {
		s.tb.Logf("%d calls refused, %s %s %v for example", len(refused), refused[0].Action, refused[0].Code, refused[0].Parameters)
	}
	if len(refused) > s.Refusals {
		s.tb.Errorf("%d calls refused, want %d at most", len(refused), s.Refusals)
	}
	return slices.DeleteFunc(calls, func(call emulator.Call) bool { return !slices.Contains(s.actions(), call.Action) })
}

// InTime checks that the calls of each action took at most 1.1 times what they take at the rate of its quota. A few of them take seconds,
// which say nothing.
func (s *Storm) InTime(calls []emulator.Call) {
	s.tb.Helper()
	last, counts := ends(calls)
	for _, action := range s.actions() {
		if counts[action] > s.Quota/3 {
			s.within(last[action].Sub(s.Began), counts[action], action)
		}
	}
}

// AllInTime is [Storm.InTime] for a product that cannot replace backend servers: those that come wait for those that leave, so that all
// calls together took at most
// 1.1 times what those of the most frequent action take at the rate of its quota.
func (s *Storm) AllInTime(calls []emulator.Call) {
	s.tb.Helper()
	last, counts := ends(calls)
	end, most := s.Began, s.Add
	for action, at := range last {
		if at.After(end) {
			end = at
		}
		if counts[action] > counts[most] {
			most = action
		}
	}
	s.within(end.Sub(s.Began), counts[most], most)
}

// ends returns when the last call of each action was made that was not refused, and how many there were.
func ends(calls []emulator.Call) (last map[string]time.Time, counts map[string]int) {
	last, counts = map[string]time.Time{}, map[string]int{}
	for _, call := range calls {
		if call.Code == "" {
			last[call.Action] = call.Time
			counts[call.Action]++
		}
	}
	return last, counts
}

// within checks that so many calls of an action took at most 1.1 times what they take at the rate of its quota.
func (s *Storm) within(took time.Duration, calls int, action string) {
	s.tb.Helper()
	least := s.Least(calls)
	s.tb.Logf("%d times %s in %s; at the rate of the quota they take %s", calls, action, took.Round(time.Second), least.Round(time.Second))
	if float64(took) > late*float64(least) {
		s.tb.Errorf("%d times %s took %s, more than 1.1 times the %s that the quota takes", calls, action, took, least)
	}
}

// Least is how long so many calls of one action take at the rate of its quota.
func (s *Storm) Least(calls int) time.Duration {
	return time.Duration(calls) * time.Minute / time.Duration(s.Quota)
}

// OutInTime checks that the calls that took out instances took at most 1.1 times what they take at the rate of their quotas.
func (s *Storm) OutInTime(calls []emulator.Call, instances sets.Set[string]) {
	s.tb.Helper()
	last, counts := time.Time{}, map[string]int{}
	for _, call := range calls {
		if call.Code == "" && s.TakesOut(call, instances) {
			counts[call.Action]++
			last = call.Time
		}
	}
	s.tb.Logf("%v took dead nodes out", counts)
	action := s.Remove
	if s.Replace != "" && counts[s.Replace] > counts[s.Remove] {
		action = s.Replace
	}
	s.within(last.Sub(s.Began), counts[action], action)
}

// OutFirst checks that no server is added to a group before the last of these instances is out of it. All of them have failed by then: what
// is added before, or at that instant, may be by a pass that knows of some of them.
func (s *Storm) OutFirst(calls []emulator.Call, instances sets.Set[string], failed time.Time) {
	s.tb.Helper()
	grown := sets.New[string]()
	for _, call := range calls {
		group := call.Parameters[s.Group]
		switch {
		case call.Code != "" || !call.Time.After(failed):
		case call.Action == s.Add:
			grown.Insert(group)
		case grown.Has(group) && s.TakesOut(call, instances):
			s.tb.Errorf("%s gets others before dead ones are out", group)
		}
	}
	if len(grown) == 0 {
		s.tb.Error("no group gets others: this says nothing about what comes first")
	}
}

// TakesOut reports whether a call removes or replaces one of the instances.
func (s *Storm) TakesOut(call emulator.Call, instances sets.Set[string]) bool {
	for name, value := range call.Parameters {
		leaves := call.Action == s.Remove || call.Action == s.Replace && name == s.Leaving
		if leaves && names(value, instances) {
			return true
		}
	}
	return false
}

// names reports whether a value is, or has in quotes, the id of one of the instances.
func names(value string, instances sets.Set[string]) bool {
	if instances.Has(value) {
		return true
	}
	for i, part := range strings.Split(value, `"`) {
		if i%2 == 1 && instances.Has(part) {
			return true
		}
	}
	return false
}

// DoneSince checks that the last of the calls came no later after a time than so many writes of one action take, times 1.1.
func (s *Storm) DoneSince(event time.Time, calls []emulator.Call, writes int) {
	s.tb.Helper()
	if len(calls) == 0 {
		s.tb.Error("nothing was written")
		return
	}
	end := calls[len(calls)-1].Time
	took, least := end.Sub(event), s.Least(writes)
	s.tb.Logf("%d writes in %s, the last one %s after the last event; it may take what %d writes take, %s", len(calls), end.Sub(s.Began), took,
		writes, least)
	if float64(took) > late*float64(least) {
		s.tb.Errorf("done %s after the last event, more than 1.1 times the %s that %d writes take", took, least, writes)
	}
}
