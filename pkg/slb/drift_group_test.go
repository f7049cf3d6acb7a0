package slb

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// newTimedGroup makes a world with Services of one group.
func newTimedGroup(t *testing.T, services int) *timedWorld {
	t.Helper()
	w := newTimedWorld(t, 0)
	for i := range services {
		svc := overflowing(grouped(fmt.Sprintf("web-%d", i), "edge", int32(1000+i)))
		w.put(svc)
		w.pass(svc.Name)
	}
	w.start()
	return w
}

// nameOn is the name of the Service that has a listener on a port.
func nameOn(port int) string { return fmt.Sprintf("web-%d", port-1000) }

// TestGroupIsReadTogether: Services that share CLBs cost about one read each after a start, and at most 1.2 in a period. Each of them once
// read all CLBs of the group, with all listeners: 2,000 Services used up the quota of reads for minutes.
func TestGroupIsReadTogether(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const services, hours, most = 80, 4, 1.2 // on two CLBs
		w := newTimedGroup(t, services)
		started := w.start()
		first := slices.Concat(w.forward(testResyncPeriod * 6 / 5)...)
		later := slices.Concat(w.forward(hours * time.Hour)...)
		for what, each := range map[string]float64{
			"at the start": float64(len(started)) / services, "in the first period": float64(len(first)) / services / most,
			"in a period": float64(len(later)) / services / (hours * float64(time.Hour) / float64(testResyncPeriod)),
		} {
			if t.Logf("%.2f reads per Service %s", each, what); each > most {
				t.Errorf("%.2f reads per Service %s, want at most %.1f", each, what, most)
			}
		}
		if writes := writesOf(slices.Concat(started, first, later)); len(writes) != 0 {
			t.Errorf("writes %v", writes)
		}
	})
}

// TestDriftInAGroupIsRepairedInTime: what Services read for one another hides no change for longer than a read of their own would.
func TestDriftInAGroupIsRepairedInTime(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const longest, services = testResyncPeriod*6/5 + driftWindow, 12
	for _, test := range []struct {
		name    string
		within  time.Duration
		spoil   func(w *timedWorld, id string, listener alicloud.Listener, group alicloud.VServerGroup) error
		writes  string
		repairs int
	}{
		{"listener", longest, func(w *timedWorld, id string, listener alicloud.Listener, _ alicloud.VServerGroup) error {
			return w.api.SetListener(w.t.Context(), id, alicloud.Listener{
				ListenerKey: listener.ListenerKey, Attributes: alicloud.Attributes{"Scheduler": "rr"},
			})
		}, "SetLoadBalancerTCPListenerAttribute", services},
		{"attribute", longest, func(w *timedWorld, id string, _ alicloud.Listener, _ alicloud.VServerGroup) error {
			return w.api.SetDeleteProtection(w.t.Context(), id, "off")
		}, "SetLoadBalancerDeleteProtection", 1},
		{"backend server", 2 * longest, func(w *timedWorld, _ string, _ alicloud.Listener, group alicloud.VServerGroup) error {
			return w.api.RemoveBackends(w.t.Context(), group.ID, group.Backends[:1])
		}, "AddVServerGroupBackendServers", services},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTimedGroup(t, services)
				for name := range w.due {
					w.change(name, func(svc *corev1.Service) {
						annotate(svc, annotation.Scheduler, "wlc")
						annotate(svc, annotation.DeleteProtection, "on")
					})
					w.pass(name)
				}
				w.forward(2 * longest)
				for id, lb := range w.listeners() {
					for _, listener := range lb {
						group, err := w.api.DescribeVServerGroup(t.Context(), listener.VServerGroupID)
						w.must(err)
						w.must(test.spoil(w, id, listener, group))
					}
				}
				w.calls()
				repairs := 0
				for _, action := range writesOf(slices.Concat(w.forward(test.within)...)) {
					if action != test.writes {
						t.Errorf("it also writes %s", action)
					}
					repairs++
				}
				if repairs != test.repairs {
					t.Errorf("%d repairs of %d within %s", repairs, test.repairs, test.within)
				}
				if writes := writesOf(slices.Concat(w.forward(time.Hour)...)); len(writes) != 0 {
					t.Errorf("afterwards it writes %v", writes)
				}
			})
		})
	}
}

// listeners are those of all CLBs.
func (w *timedWorld) listeners() map[string][]alicloud.Listener {
	w.t.Helper()
	ids := map[string]bool{}
	for name := range w.due {
		ids[w.get(name).Labels[driver.LabelLoadBalancerID]] = true
	}
	all, err := w.api.DescribeListeners(w.t.Context(), slices.Collect(maps.Keys(ids))...)
	w.must(err)
	return all
}

// TestGroupReadsAfterAWrite: after a start, a Service changes the CLB or a listener of its group. The next one does not act on what was
// read before that.
func TestGroupReadsAfterAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTimedGroup(t, 12)
		for i := range 12 {
			w.change(nameOn(1000+i), func(svc *corev1.Service) {
				annotate(svc, annotation.DeleteProtection, "off")
				annotate(svc, annotation.Scheduler, "wlc")
			})
		}
		if writes := writesOf(w.start()); len(writes) != 13 {
			t.Errorf("%d writes for 12 listeners and a CLB: %v", len(writes), writes)
		}
		if writes := writesOf(slices.Concat(w.forward(2 * testResyncPeriod)...)); len(writes) != 0 {
			t.Errorf("afterwards it writes %v", writes)
		}
	})
}
