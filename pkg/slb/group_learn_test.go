package slb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// A CLB takes half as many backend servers as is assumed. It is chance how many of the Services are on it when they learn that, and all may be: each has at least
// its share then.
const (
	learningNodes, learningServices, learnedMembers = 20, 30, 100

	leastLearned, mostLearning = learnedMembers / learningServices, 2
)

// callsToLearn is how many calls may be refused until it is known how many backend servers a CLB takes: those that create a vServer group and add backend
// servers to it, and twice those that find out how many fit.
const callsToLearn = 12

// learningFleet are Services of a group on CLBs whose quota nobody knows.
func learningFleet(t *testing.T) *fleet {
	t.Helper()
	f := newFleetIn(t, cloud.Limits{BackendsPerLB: learnedMembers}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: quota.NewBook(nil)})
	for i := range learningNodes {
		f.createFleetNode(nodeName(i))
	}
	for i := range learningServices {
		f.put(born(overflowing(grouped(nameOfSharing(i), "edge", int32(1000+i))), int64(i))) //nolint:gosec // a port
		synctest.Wait()
	}
	return f
}

// refused returns how many calls the cloud has refused, and how many have removed backend servers, since it was last asked.
func (f *fleet) refused() (refused, removals int) {
	for _, call := range f.emulator.NewCalls() {
		switch {
		case call.Code != "":
			refused++
		case call.Action == removeServers:
			removals++
		}
	}
	return refused, removals
}

// TestGroupLearnsFromARefusal: a CLB takes fewer backend servers than is assumed. The first refusal teaches that to all Services of the group: the first ones
// give up backend servers, others may go to the next CLB, all are served, and no call is refused any more.
func TestGroupLearnsFromARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := learningFleet(t)
		defer func() { f.stop() }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		f.checkLearned()
		if refused, _ := f.refused(); refused > mostLearning*callsToLearn {
			t.Errorf("%d calls were refused until the quota was known, want %d at most", refused, mostLearning*callsToLearn)
		}
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		if calls := f.emulator.NewCalls(); len(calls) > 0 {
			t.Errorf("%d calls afterwards, the first one %s", len(calls), calls[0].Action)
		}
	})
}

// TestLearnedQuotaTakesNothingAway: what a refusal teaches takes no backend server from a Service while no other one needs it, neither when all learn it anew, nor in
// a new process.
func TestLearnedQuotaTakesNothingAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := learningFleet(t)
		defer func() { f.stop() }()
		time.Sleep(2 * time.Hour) // what was learned is forgotten
		synctest.Wait()
		before := f.members()
		f.refused()
		check := func(when string) {
			t.Helper()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			f.checkLearned()
			for name, n := range f.members() {
				if n < before[name] {
					t.Errorf("%s: %s has %d backend servers, and had %d", when, name, n, before[name])
				}
			}
			refused, removals := f.refused()
			if removals > 0 || refused > mostLearning*callsToLearn {
				t.Errorf("%s: backend servers are removed %d times, and %d calls refused", when, removals, refused)
			}
		}
		f.createFleetNode(nodeName(learningNodes))
		check("one more node")
		f.stop()
		f.config.Quotas = quota.NewBook(nil)
		f.start()
		check("a new process")
	})
}

// members returns how many backend servers each vServer group has.
func (f *fleet) members() map[string]int {
	members := map[string]int{}
	for _, lb := range f.state() {
		for group, servers := range lb.Groups {
			members[group] = len(servers)
		}
	}
	return members
}

// checkLearned checks that all Services have backend servers, on few CLBs.
func (f *fleet) checkLearned() {
	f.t.Helper()
	members := f.members()
	for group, n := range members {
		if n < leastLearned {
			f.t.Errorf("%s has %d backend servers", group, n)
		}
	}
	if clbs := len(f.state()); clbs > mostLearning || len(members) != learningServices {
		f.t.Errorf("%d vServer groups on %d CLBs, want %d on %d at most", len(members), clbs, learningServices, mostLearning)
	}
}
