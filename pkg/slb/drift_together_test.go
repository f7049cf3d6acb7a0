package slb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// timedWorld is a world in a synctest bubble, with Services that nothing happens to but drift detection.
type timedWorld struct {
	*world
	due map[string]time.Time
}

func newTimedWorld(t *testing.T, services int) *timedWorld {
	t.Helper()
	return newTimedWorldOf(t, services, 80)
}

// newTimedWorldOf is [newTimedWorld] for Services with other ports.
func newTimedWorldOf(t *testing.T, services int, ports ...int32) *timedWorld {
	t.Helper()
	e := processCloud(t)
	w := &timedWorld{world: processWorld(t, e, e.Transport()), due: map[string]time.Time{}}
	w.events = make(chan string, 10_000)
	w.Reconciler = service.NewReconciler(w.options())
	threeNodes(w.world)
	for i := range services {
		svc := testService(fmt.Sprintf("web-%d", i), ports...)
		w.put(svc)
		w.pass(svc.Name)
	}
	return w
}

// pass makes one pass, and notes when the next one is due.
func (w *timedWorld) pass(name string) {
	w.t.Helper()
	wait, err := w.Reconcile(w.t.Context(), w.get(name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.due[name] = time.Now().Add(wait)
}

// start begins with a process that remembers nothing and reads all CLBs together. It returns its calls.
func (w *timedWorld) start() []string {
	w.t.Helper()
	w.Reconciler = service.NewReconciler(w.options())
	w.cacheServices(slices.Collect(maps.Keys(w.due))...)
	if err := w.Preload(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.calls()
	for name := range w.due {
		w.pass(name)
	}
	return w.calls()
}

// forward lets time go by, with a pass over each Service when it is due, and returns the actions per minute.
func (w *timedWorld) forward(d time.Duration) [][]string {
	w.t.Helper()
	begin, minutes := time.Now(), make([][]string, int(d/time.Minute)+1)
	for {
		next := ""
		for name, at := range w.due {
			if next == "" || at.Before(w.due[next]) {
				next = name
			}
		}
		left := time.Until(w.due[next])
		if time.Since(begin)+left >= d {
			time.Sleep(d - time.Since(begin))
			return minutes
		}
		time.Sleep(left)
		w.pass(next)
		minute := int(time.Since(begin) / time.Minute)
		minutes[minute] = append(minutes[minute], w.calls()...)
	}
}

// TestDriftIsReadTogether: many Services cost at most 1.2 reads each in a period, evenly spread, and that from the start.
func TestDriftIsReadTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const services, hours = 101, 4
		w := newTimedWorld(t, services)
		w.start()
		first := w.forward(testResyncPeriod * 6 / 5)
		minutes := w.forward(hours * time.Hour)
		total, most, actions := 0, 0, map[string]int{}
		for _, calls := range minutes {
			total, most = total+len(calls), max(most, len(calls))
			for _, action := range calls {
				actions[action]++
			}
		}
		each := float64(total) / services / (hours * float64(time.Hour) / float64(testResyncPeriod))
		t.Attr("reads", fmt.Sprintf("%.2f", each)) // for make bench
		t.Logf("first period %d calls, then %d in %d hours, %.2f per Service and period, at most %d in a minute: %v",
			len(slices.Concat(first...)), total, hours, each, most, actions)
		if each > 1.2 {
			t.Errorf("%.2f reads per Service and period, want at most 1.2", each)
		}
		if even := float64(total) / hours / 60; float64(most) > 4*even {
			t.Errorf("%d calls in one minute, %.1f on average", most, even)
		}
		if calls := slices.Concat(first...); float64(len(calls)) > 1.2*1.2*services { // more than a period, so that each had its turn
			t.Errorf("%d calls in the period after the start", len(calls))
		}
		if writes := writesOf(slices.Concat(slices.Concat(first, minutes)...)); len(writes) != 0 {
			t.Errorf("writes %v", writes)
		}
	})
}

// TestDriftIsRepairedInTime: a listener and an attribute within one period, backend servers within two, and a group that nothing uses
// once everything is read.
func TestDriftIsRepairedInTime(t *testing.T) {
	t.Parallel()
	const longest = testResyncPeriod*6/5 + driftWindow
	for _, test := range []struct {
		name   string
		within time.Duration
		spoil  func(w *timedWorld, id string, group alicloud.VServerGroup) error
		writes string
	}{
		{"listener", longest, func(w *timedWorld, id string, _ alicloud.VServerGroup) error {
			return w.api.SetListener(w.t.Context(), id, alicloud.Listener{
				ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}, Attributes: alicloud.Attributes{"Scheduler": "rr"},
			})
		}, "SetLoadBalancerTCPListenerAttribute"},
		{"attribute", longest, func(w *timedWorld, id string, _ alicloud.VServerGroup) error {
			return w.api.SetDeleteProtection(w.t.Context(), id, "off")
		}, "SetLoadBalancerDeleteProtection"},
		{"backend server", 2 * longest, func(w *timedWorld, _ string, group alicloud.VServerGroup) error {
			return w.api.RemoveBackends(w.t.Context(), group.ID, group.Backends[:1])
		}, "AddVServerGroupBackendServers"},
		{"weight", 2 * longest, func(w *timedWorld, _ string, group alicloud.VServerGroup) error {
			group.Backends[0].Weight = 1
			return w.api.SetBackends(w.t.Context(), group.ID, group.Backends[:1])
		}, "SetVServerGroupAttribute"},
		{"group", driftCycle * 3 / 2 * longest, func(w *timedWorld, id string, group alicloud.VServerGroup) error {
			_, err := w.api.CreateVServerGroup(w.t.Context(), id, strings.Replace(group.Name, "30080", "30081", 1), nil)
			return err
		}, "DeleteVServerGroup"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTimedWorld(t, 12)
				w.start()
				for name := range w.due {
					w.change(name, func(svc *corev1.Service) {
						annotate(svc, annotation.Scheduler, "wlc")
						annotate(svc, annotation.DeleteProtection, "on")
					})
					w.pass(name)
				}
				w.forward(2 * longest)
				for name := range w.due {
					id := w.get(name).Labels[driver.LabelLoadBalancerID]
					groups, err := w.api.DescribeVServerGroups(t.Context(), id)
					w.must(err)
					group, err := w.api.DescribeVServerGroup(t.Context(), groups[0].ID)
					w.must(err)
					w.must(test.spoil(w, id, group))
				}
				w.calls()
				repairs := 0
				for _, action := range writesOf(slices.Concat(w.forward(test.within)...)) {
					if action != test.writes {
						t.Errorf("it also writes %s", action)
					}
					repairs++
				}
				if repairs != len(w.due) {
					t.Errorf("%d repairs of %d within %s", repairs, len(w.due), test.within)
				}
				if writes := writesOf(slices.Concat(w.forward(time.Hour)...)); len(writes) != 0 {
					t.Errorf("afterwards it writes %v", writes)
				}
			})
		})
	}
}

// TestReadTogetherBeforeAWrite: what was read of a CLB before its Service changed it differs from what is known, and is no drift.
func TestReadTogetherBeforeAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTimedWorld(t, 10)
		w.forward(2 * testResyncPeriod) // everything was read on its own
		for range 3 {
			next := slices.MinFunc(slices.Collect(maps.Keys(w.due)), func(a, b string) int { return w.due[a].Compare(w.due[b]) })
			time.Sleep(time.Until(w.due[next]))
			w.pass(next) // reads those of others
			for name := range w.due {
				w.change(name, func(svc *corev1.Service) {
					annotate(svc, annotation.DefaultWeight, fmt.Sprint(1+time.Now().Unix()%100))
				})
				w.pass(name)
			}
			w.calls()
			if writes := writesOf(slices.Concat(w.forward(testResyncPeriod)...)); len(writes) != 0 {
				t.Errorf("writes %v", writes)
			}
		}
	})
}

// TestDriftFindsWhatIsGone: a CLB that somebody deleted is missing in what is read together, and one takes its place.
func TestDriftFindsWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTimedWorld(t, 12)
		w.start()
		w.forward(2 * testResyncPeriod)
		id := w.get("web-3").Labels[driver.LabelLoadBalancerID]
		w.must(w.api.SetDeleteProtection(t.Context(), id, "off"))
		w.must(w.api.DeleteLoadBalancer(t.Context(), id))
		w.calls()
		w.forward(testResyncPeriod*6/5 + driftWindow)
		if now := w.get("web-3").Labels[driver.LabelLoadBalancerID]; now == id || len(w.state()) != 12 {
			t.Errorf("%d CLBs, that of the Service is %s", len(w.state()), now)
		}
	})
}

// TestGroupOfAProcessBefore: what a new process reads at its start shows no group that no listener uses, and the first period finds it.
func TestGroupOfAProcessBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTimedWorld(t, 12)
		id := w.get("web-3").Labels[driver.LabelLoadBalancerID]
		groups, err := w.api.DescribeVServerGroups(t.Context(), id)
		w.must(err)
		_, err = w.api.CreateVServerGroup(t.Context(), id, strings.Replace(groups[0].Name, "30080", "30081", 1), nil)
		w.must(err)
		w.start()
		if writes := writesOf(slices.Concat(w.forward(testResyncPeriod * 6 / 5)...)); !slices.Equal(writes, []string{"DeleteVServerGroup"}) {
			t.Errorf("writes %v in the first period, want the deletion of the group", writes)
		}
	})
}
