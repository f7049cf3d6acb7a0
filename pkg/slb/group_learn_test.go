package slb

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// A CLB takes half as many backend servers as is assumed. It is chance how many of the Services are on it when they learn that, and all may
// be: each has at least its share then.
const (
	learningNodes, learningServices, learnedMembers = 20, 30, 100

	leastLearned, mostLearning = learnedMembers / learningServices, 2
)

// callsToLearn is how many calls may be refused until it is known how many backend servers a CLB takes: those that create a vServer group
// and add backend servers to it, and twice those that find out how many fit.
const callsToLearn = 12

// learningFleet are Services of a group on CLBs whose quota nobody knows.
func learningFleet(t *testing.T) *fleet {
	t.Helper()
	f := newFleetIn(t, cloud.Limits{BackendsPerLB: learnedMembers},
		config.Config{BackendSubset: backend.SubsetAuto, Quotas: quota.NewBook(nil)})
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

// TestGroupLearnsFromARefusal: a CLB takes fewer backend servers than is assumed. The first refusal teaches that to all Services of the
// group: the first ones give up backend servers, others may go to the next CLB, all are served, and no call is refused any more.
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

// TestLearnedQuotaTakesNothingAway: what a refusal teaches takes no backend server from a Service while no other one needs it, neither when
// all learn it anew, nor in a new process.
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

// TestAssumedQuotaTakesNothingAway: the Quota Center says how many backend servers a CLB takes, and two Services of a group have more than
// half of that published each. Then the Quota Center shows less, or a new process does not know better. The CLB shows that the quota is
// larger: no backend server leaves. A third Service is served all the same, by what the others give up if the CLB takes no more.
func TestAssumedQuotaTakesNothingAway(t *testing.T) {
	t.Parallel()
	const assumed, members = 80, 60
	know := func(value int) *quota.Book {
		book := quota.NewBook(nil)
		book.Read(map[quota.Code]quota.Reading{quota.BackendsPerCLB: {Value: value}})
		return book
	}
	for _, test := range []struct {
		name           string
		quota          int
		local, restart bool
	}{
		{"Cluster, a new process", 5 * assumed, false, true},
		{"Local, a new process", 5 * assumed, true, true},
		{"Cluster, a smaller value", 5 * assumed, false, false},
		{"Local, a smaller value", 5 * assumed, true, false},
		{"the CLB is full, a new process", 2 * members, false, true},
		{"the CLB is full, a smaller value", 2 * members, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{BackendsPerLB: test.quota}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: know(test.quota)})
				defer func() { f.stop() }()
				pods := map[int]int{}
				for i := range members {
					f.createFleetNode(nodeName(i))
					pods[i] = 1
				}
				create := func(i int) {
					svc := born(grouped(nameOfSharing(i), "edge", int32(80+i)), int64(i)) //nolint:gosec // a port
					if test.local {
						svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
						f.setPods(svc, pods)
					}
					f.put(svc)
					time.Sleep(30 * time.Minute)
				}
				create(0)
				create(1)
				before := f.members()
				if test.restart {
					f.stop()
					f.config.Quotas = know(assumed)
					f.start()
				} else {
					f.config.Quotas.Read(map[quota.Code]quota.Reading{quota.BackendsPerCLB: {Value: assumed}})
				}
				f.createFleetNode("zz-new") // wakes all Services, as a changed quota does
				time.Sleep(30 * time.Minute)
				for group, n := range before {
					if after := f.members()[group]; n < members || after < n {
						t.Errorf("%s had %d backend servers, and has %d", group, n, after)
					}
				}
				create(2)
				for group, n := range f.members() {
					if n < assumed/4 || before[group] > 0 && n < before[group] && test.quota > 2*members {
						t.Errorf("%s had %d backend servers, and has %d beside a third Service", group, before[group], n)
					}
				}
				if n := len(f.members()); n != 3 {
					t.Errorf("%d Services have a vServer group", n)
				}
			})
		})
	}
}
