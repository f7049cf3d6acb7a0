package slb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestListenerStaysWhileItsNewGroupIsEmpty: the group that a listener is to move to exists, and the cloud takes no backend server into it.
// The listener and the backend servers that it has stay, and it moves once there are others.
func TestListenerStaysWhileItsNewGroupIsEmpty(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*corev1.Service){
		"node port":    func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 },
		"backend type": eni,
	}
	for what, change := range changes {
		for code, status := range map[string]int{"Throttling.User": 400, "Forbidden.RAM": 403, "NetworkConflict": 400} {
			t.Run(what+" "+code, func(t *testing.T) {
				t.Parallel()
				w, _ := podWorld(t)
				before := w.state()["a0f5e8a1cweb"].serving("tcp:80")
				w.fault(map[string]any{"action": "CreateVServerGroup", "code": "NetworkConflict", "status": 400, "times": 1})
				w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": code, "status": status, "times": 0})
				w.change("web", change)
				_ = w.pass("web") //nolint:errcheck // a throttled pass waits
				lb := w.state()["a0f5e8a1cweb"]
				if diff := cmp.Diff(before, lb.serving("tcp:80")); diff != "" || len(lb.Groups) != 2 {
					t.Errorf("%d groups, want two; backend servers of the listener (-want +got):\n%s", len(lb.Groups), diff)
				}
				w.clearFaults()
				w.restart() // forgets what was refused
				w.converge("web")
				lb = w.state()["a0f5e8a1cweb"]
				if serving := lb.serving("tcp:80"); len(serving) == 0 || slices.Equal(serving, before) && what != "node port" || len(lb.Groups) != 1 {
					t.Errorf("in the end, the listener has %v, groups %v", serving, lb.Groups)
				}
			})
		}
	}
}

// TestListenerStaysWhileNobodyKnowsItsBackends: a port gets another name and another target port, or pods in place of nodes, before the
// cache has EndpointSlices that say so.
func TestListenerStaysWhileNobodyKnowsItsBackends(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begin, change func(*corev1.Service)
		slices        bool
	}{
		"other port": {eni, func(svc *corev1.Service) {
			svc.Spec.Ports[0].Name, svc.Spec.Ports[0].TargetPort = "new", intstr.FromInt32(9090)
		}, true},
		"no slices": {func(*corev1.Service) {}, eni, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			if test.slices {
				w, _ = podWorld(t, test.begin)
			} else {
				w = settled(t, testService("web", 80))
			}
			before := w.state()["a0f5e8a1cweb"].serving("tcp:80")
			w.change("web", test.change)
			w.mustPass("web")
			if diff := cmp.Diff(before, w.state()["a0f5e8a1cweb"].serving("tcp:80")); diff != "" || len(before) == 0 {
				t.Errorf("backend servers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListenerAndGroupRemovedByHand: what the listeners were says no longer that the group must exist.
func TestListenerAndGroupRemovedByHand(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	listeners, err := w.api.DescribeListeners(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range listeners[id] {
		if err := w.api.DeleteListener(t.Context(), id, listener.ListenerKey); err != nil {
			t.Fatal(err)
		}
		if err := w.api.DeleteVServerGroup(t.Context(), listener.VServerGroupID); err != nil {
			t.Fatal(err)
		}
	}
	w.addNode("d")
	w.converge("web")
	w.wantBackends("in the end", "i-a 100", "i-b 100", "i-c 100", "i-d 100")
}

// TestOneAnswerLacksAGroupInUse: a group that a listener uses is there although one read of it says that it is not. There is no second one.
func TestOneAnswerLacksAGroupInUse(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.fault(map[string]any{"action": "DescribeVServerGroupAttribute", "code": "InvalidParameter", "status": 404, "times": 1})
	w.drift("web")
	if err := w.pass("web"); err == nil {
		t.Error("the pass says nothing of the contradiction")
	}
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
}

// TestOneAnswerLacksAGroup: a group that no listener uses is gone when the list and a read by id agree, twice. Until then nobody makes a
// second one.
func TestOneAnswerLacksAGroup(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]map[string]any{
		"by id":        {"action": "DescribeVServerGroupAttribute", "code": "InvalidParameter", "status": 404, "times": 1},
		"in the list":  {"action": "DescribeVServerGroups", "body": `{"RequestId":"1","VServerGroups":{"VServerGroup":[]}}`, "times": 1},
		"in two lists": {"action": "DescribeVServerGroups", "body": `{"RequestId":"1","VServerGroups":{"VServerGroup":[]}}`, "times": 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.put(reusing("web", w.makeCLB().ID, "false", 80))
			w.mustPass("web")
			w.calls()
			w.fault(fault)
			w.drift("web")
			for range 3 {
				_ = w.pass("web") //nolint:errcheck // it says that answers contradict each other
			}
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("writes %v", writes)
			}
		})
	}
}

// TestGroupRemovedByHand: one that is really gone is made again.
func TestGroupRemovedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.put(reusing("web", lb.ID, "false", 80))
	w.mustPass("web")
	groups, err := w.api.DescribeVServerGroups(t.Context(), lb.ID)
	testkit.Check(t, err)
	testkit.Check(t, w.api.DeleteVServerGroup(t.Context(), groups[0].ID))
	w.calls()
	w.drift("web")
	w.converge("web")
	if diff := cmp.Diff([]string{"CreateVServerGroup"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
