package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// stormNodes is how many nodes join or leave at once: as 500 of 5,000.
const stormNodes = scaleNodes / 10

// How the backend servers of a vServer group change.
const (
	addServers     = "AddVServerGroupBackendServers"
	removeServers  = "RemoveVServerGroupBackendServers"
	replaceServers = "ModifyVServerGroupBackendServers"
)

// storm is a fleet to which much happens at once.
type storm struct {
	*scaleTest
	began    time.Time
	replaced time.Time // when another process went on, zero for never
	gone     int       // how many of the first nodes have left
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	return newStormOf(t, scaled)
}

func newStormOf(t *testing.T, size scaleSize) *storm {
	t.Helper()
	s := &storm{scaleTest: newScaleTestOf(t, backend.SubsetAuto, size)}
	s.begin()
	return s
}

// begin has what follows measured from a time in the first half of a minute on, so that the window of the quotas in which it begins is not over at once.
func (s *storm) begin() {
	s.t.Helper()
	now := time.Now()
	time.Sleep(now.Truncate(time.Minute).Add(time.Minute + 10*time.Second).Sub(now))
	s.emulator.NewCalls()
	s.began = time.Now()
}

// joins has nodes join at once.
func (s *storm) joins(n int) {
	s.t.Helper()
	for i := range n {
		s.create()
		s.drained(i)
	}
}

// leaves has the nodes leave at once that have been there longest.
func (s *storm) leaves(n int) {
	s.t.Helper()
	for i := range n {
		s.leave(s.gone)
		s.gone++
		s.drained(i)
	}
}

// drained waits now and then, without any time, until everybody has seen the events: the fake API server's watches hold no more than a hundred.
func (s *storm) drained(i int) {
	if i%stormNodes == stormNodes-1 {
		synctest.Wait()
	}
}

// replaceProcess is that of the fleet, with its time.
func (s *storm) replaceProcess() {
	s.t.Helper()
	s.fleet.replaceProcess()
	s.replaced = time.Now()
}

// over waits until nothing is written any more, and checks what must hold then. It returns the calls that changed backend servers.
func (s *storm) over() []emulator.Call {
	s.t.Helper()
	calls := s.quiet()
	s.balanced(s.size.backends)
	return calls
}

// quiet waits until nothing is written any more, and checks that no node that is gone is a backend server. It returns the calls that changed backend servers.
func (s *storm) quiet() []emulator.Call {
	s.t.Helper()
	s.rest()
	behind, _ := s.holders()
	for i := range s.gone {
		for name, ids := range behind {
			if id := "i-" + nodeName(i); slices.Contains(ids, id) {
				s.t.Errorf("%s has the backend server %s, whose node is gone", name, id)
			}
		}
	}
	return slices.DeleteFunc(s.emulator.NewCalls(), func(call emulator.Call) bool {
		return !slices.Contains([]string{addServers, removeServers, replaceServers}, call.Action)
	})
}

// writing is one kind of write on one vServer group, or on all where group is empty, in one window of its quota.
type writing struct {
	action, group string
	window        int64
	// later says that it comes from the process that replaced another one.
	later bool
}

func writingOf(call emulator.Call) writing {
	return writing{action: call.Action, group: call.Parameters["VServerGroupId"], window: call.Time.Truncate(time.Minute).Unix()}
}

// oncePerWindow checks that no process writes to a group a second time in a window whose quota was used up, but for the window in which the storm begins: what is
// written before anything has to wait knows nothing of what comes. Nor does a new process know what the one before it wrote.
func (s *storm) oncePerWindow(calls []emulator.Call) {
	s.t.Helper()
	groups, all := map[writing]int{}, map[writing]int{}
	for _, call := range calls {
		if call.Code == "" {
			one := writingOf(call)
			all[writing{action: one.action, window: one.window}]++
			one.later = !s.replaced.IsZero() && call.Time.After(s.replaced)
			groups[one]++
		}
	}
	first, most := s.began.Truncate(time.Minute).Unix(), 0
	for one, n := range groups {
		full := all[writing{action: one.action, window: one.window}] >= groupQuota
		if !full || one.window == first {
			continue
		}
		if most = max(most, n); n > 1 {
			s.t.Errorf("group %s: %d times %s in the window %s", one.group, n, one.action, time.Unix(one.window, 0).UTC())
		}
	}
	s.t.Logf("at most %d times the same write of a process on a group in a window whose quota is used up", most)
}

// inTime checks that the calls of each action took at most 1.1 times what they take at the rate of its quota. A few of them take seconds, which say nothing.
func (s *storm) inTime(calls []emulator.Call) {
	s.t.Helper()
	for _, action := range []string{addServers, removeServers, replaceServers} {
		found := slices.DeleteFunc(slices.Clone(calls), func(call emulator.Call) bool { return call.Action != action || call.Code != "" })
		if len(found) <= groupQuota/3 {
			continue
		}
		took, least := found[len(found)-1].Time.Sub(s.began), time.Duration(len(found))*time.Minute/groupQuota
		s.t.Logf("%d times %s in %s; at the rate of the quota they take %s", len(found), action, took.Round(time.Second), least.Round(time.Second))
		if float64(took) > 1.1*float64(least) {
			s.t.Errorf("%d times %s took %s, more than 1.1 times the %s that the quota takes", len(found), action, took, least)
		}
	}
}
