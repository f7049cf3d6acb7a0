package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestWhatMayNotBeUsedAnyMoreIsFollowed: an existing CLB whose policy or tags change after a Service is on it keeps what the Service has
// there, and its backends follow the nodes, also after a restart. The Service gets no new port, and may leave.
func TestWhatMayNotBeUsedAnyMoreIsFollowed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(w *world, lb alicloud.LoadBalancer)
	}{
		"the policy": {func(w *world, _ alicloud.LoadBalancer) {
			w.config.Policy.LoadBalancerReuse = policy.ReuseOff
			w.restart()
		}},
		"the tag of another cluster": {func(w *world, lb alicloud.LoadBalancer) {
			w.must(w.api.TagLoadBalancer(w.t.Context(), lb.ID, []alicloud.Tag{{Key: mark.TagCluster, Value: "c9"}}))
		}},
		"the tag of another Service": {func(w *world, lb alicloud.LoadBalancer) {
			w.must(w.api.TagLoadBalancer(w.t.Context(), lb.ID, []alicloud.Tag{{Key: mark.TagOwner, Value: "a-nother"}}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			lb := w.makeCLB()
			w.put(reusing("web", lb.ID, "true", 80))
			w.mustPass("web")
			w.newEvents()
			test.change(w, lb)
			w.drift("web")
			for round, node := range []string{"d", "e"} {
				w.deleteNode([]string{"a", "b"}[round])
				w.addNode(node)
				_ = w.pass("web") //nolint:errcheck // it says why there are no new ports
				want := [][]string{{"i-b 100", "i-c 100", "i-d 100"}, {"i-c 100", "i-d 100", "i-e 100"}}[round]
				if got := w.state()["mine"].serving("tcp:80"); !slices.Equal(got, want) {
					t.Errorf("round %d: the listener leads to %v, want %v", round, got, want)
				}
				w.change("web", func(svc *corev1.Service) {
					svc.Spec.Ports = append(svc.Spec.Ports[:1], testPort(81, corev1.ProtocolTCP))
					svc.Spec.Ports[0].NodePort = 31000
				})
				_ = w.pass("web") //nolint:errcheck // as before
				if keys, group := w.listenerKeys(), w.state()["mine"].Listeners["tcp:80"]["VServerGroupId"]; !slices.Equal(keys, []string{"tcp:80"}) ||
					group != "k8s/31000/web/default/c1" {
					t.Errorf("round %d: listeners %v, port 80 leads to %v; want no new port, and its own on its node port", round, keys, group)
				}
				w.restart()
			}
			if condition := w.synced("web"); condition.Reason != problem.ReasonLoadBalancerNotReusable {
				t.Errorf("condition %+v, want %s", condition, problem.ReasonLoadBalancerNotReusable)
			}
			if shown := w.shown("web"); !slices.Equal(shown, []string{lb.Address}) {
				t.Errorf("shown %v", shown)
			}
			w.change("web", deleteService)
			w.mustPass("web")
			if on := w.state()["mine"]; len(on.Listeners)+len(on.Groups) != 0 || len(w.get("web").Finalizers) != 0 {
				t.Errorf("after the Service: %v %v", on.Listeners, on.Groups)
			}
		})
	}
}

// TestALockedCLBCostsOneWrite: the state of the CLB is no fault of its backend servers. Once it is unlocked, it follows them soon.
func TestALockedCLBCostsOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := settled(t, testService("web", 80, 81, 82))
		lock := func(status string) {
			w.emulator.Admin("PUT", "/_emulator/loadbalancers/"+w.onlyCLB(), `{"LoadBalancerStatus":"`+status+`"}`)
		}
		lock("locked")
		w.deleteNode("a")
		w.addNode("d")
		if writes := writesOf(w.passesOver("web", time.Hour)); len(writes) > 2 {
			t.Errorf("%d writes in an hour: %v", len(writes), writes)
		}
		if condition := w.synced("web"); condition.Reason != problem.ReasonLoadBalancerLocked || condition.Status != "False" {
			t.Errorf("condition %+v", condition)
		}
		if events := w.newEvents(); len(events) > 2 ||
			!strings.Contains(strings.Join(events, "\n"), "Warning "+problem.ReasonLoadBalancerLocked) {
			t.Errorf("events %q", events)
		}
		lock("active")
		w.passesOver("web", 2*time.Minute+time.Second)
		if got := w.state()["a0f5e8a1cweb"].serving("tcp:80"); !slices.Equal(got, []string{"i-b 100", "i-c 100", "i-d 100"}) {
			t.Errorf("the listener leads to %v", got)
		}
		if condition := w.synced("web"); condition.Status != "True" {
			t.Errorf("condition %+v", condition)
		}
	})
}

// TestAStoppedCLBIsSaid: one that somebody has stopped carries no traffic, and its Service says so.
func TestAStoppedCLBIsSaid(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	for _, test := range []struct{ status, condition, reason string }{
		{"inactive", "False", problem.ReasonLoadBalancerStopped}, {"active", "True", problem.ReasonEnsured},
	} {
		w.raw("2014-05-15", "SetLoadBalancerStatus", map[string]string{"LoadBalancerId": w.onlyCLB(), "LoadBalancerStatus": test.status}, nil)
		w.drift("web")
		w.mustPass("web")
		if condition := w.synced("web"); string(condition.Status) != test.condition || condition.Reason != test.reason {
			t.Errorf("%s: condition %+v", test.status, condition)
		}
	}
	w.mustReport(problem.ReasonLoadBalancerStopped)
}
