package slb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestGroupMoves: a Service that comes into a group, leaves it or changes it serves at its new place before it leaves the old one.
func TestGroupMoves(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		before *corev1.Service
		change func(*corev1.Service)
		want   map[string][]string
	}{
		{"into a group", testService("web", 80), func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") }, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}}},
		{"out of a group", grouped("web", "edge", 80), func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) },
			map[string][]string{edgeCLB: {"tcp:81 shop"}, "a0f5e8a1cweb": {"tcp:80 web"}}},
		{"to another group", grouped("web", "edge", 80), func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") },
			map[string][]string{edgeCLB: {"tcp:81 shop"}, "k8s-group-default-other": {"tcp:80 web"}}},
		{"to another group, the last one", grouped("web", "alone", 80), func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") },
			map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}}},
		{"from an existing CLB", nil, func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.LoadBalancerID))
			delete(svc.Annotations, key(annotation.ForceOverrideListeners))
			annotate(svc, annotation.Group, "edge")
		}, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}, "mine": {}}},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				before := test.before
				if before == nil {
					before = reusing("web", w.makeCLB().ID, "true", 80)
				} else {
					before = before.DeepCopy()
				}
				w.putAll(before, grouped("shop", "edge", 81))
				from := w.address("web")
				w.change("web", test.change)
				if restarted {
					w.restart()
				}
				w.mustPass("web")
				for range 6 {
					if address := w.address("web"); address != from && !w.answers("web", from) {
						break
					} else if !w.answers("web", address) {
						t.Fatalf("the status shows %s, which does not serve", address)
					}
					w.mustPass("web")
				}
				w.mustPass("web")
				wantOwners(t, w, test.want)
				if record, _ := service.RecordOn(w.get("web")); len(record.Leaving) > 0 {
					t.Errorf("the Record still says that %v is to be left", record.Leaving)
				}
				if found := w.orphans(); len(found) > 0 {
					t.Errorf("orphans: %v", found)
				}
				w.silent("afterwards", "web", "shop")
				w.leavesNothing("shop", "web")
			})
		}
	}
}

// halfMoved makes a world in which the Service web moves from the group edge to the group other, where the cloud refuses one of its two ports. It returns the
// address that web shows.
func halfMoved(t *testing.T) (w *world, from string) {
	t.Helper()
	web := grouped("web", "edge", 80, 443)
	annotate(web, annotation.ProtocolPort, "http:443")
	w = groupWorld(t, grouped("shop", "other", 81), web)
	from = w.address("web")
	w.fault(map[string]any{"action": "CreateLoadBalancerHTTPListener", "code": "OperationDenied.Test", "status": 400, "times": 100})
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
	return w, from
}

// TestMoveWaitsForAllPorts: while a port cannot be served at the new place, the Service shows the old one, and serves all ports there.
func TestMoveWaitsForAllPorts(t *testing.T) {
	t.Parallel()
	w, from := halfMoved(t)
	for range 3 {
		if err := w.pass("web"); err == nil {
			t.Fatal("the listener was created")
		}
		if shown := w.address("web"); shown != from {
			t.Fatalf("the status shows %s, where one of two ports is served", shown)
		}
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"http:443 web", "tcp:80 web"}, "k8s-group-default-other": {"tcp:80 web", "tcp:81 shop"}})
	w.clearFaults()
	for range 3 {
		w.mustPass("web")
	}
	wantOwners(t, w, map[string][]string{"k8s-group-default-other": {"http:443 web", "tcp:80 web", "tcp:81 shop"}})
	w.silent("afterwards", "web", "shop")
}

// TestMovedServiceLeavesWithoutPorts: a Service that shows its new place leaves the old one, even if an older Service takes its port in the meantime.
func TestMovedServiceLeavesWithoutPorts(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("shop", "edge", 81), testService("web", 80))
	from := w.address("web")
	w.fault(map[string]any{"action": "DeleteLoadBalancer", "code": "OperationDenied.Test", "status": 400, "times": 100})
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
	for range 2 {
		_ = w.pass("web") // it fails to delete the CLB
	}
	if w.address("web") == from {
		t.Fatal("the status shows the old CLB")
	}
	w.put(born(grouped("first", "edge", 80), -1))
	w.clearFaults()
	for range 3 {
		w.mustPass("first")
		w.mustPass("web")
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 first", "tcp:81 shop"}})
	w.silent("afterwards", "first", "shop", "web")
}

// TestMoveMeetsATakenPort: in the middle of a move, somebody else takes a port at the new place. The Service shows the old place, which serves all ports.
func TestMoveMeetsATakenPort(t *testing.T) {
	t.Parallel()
	w, from := halfMoved(t)
	for range 2 {
		_ = w.pass("web")
	}
	if w.address("web") != from {
		t.Fatal("moved too early")
	}
	w.put(born(grouped("first", "other", 443), -1)) // older than web
	_ = w.pass("first")
	w.clearFaults()
	for range 4 {
		_ = w.pass("first")
		_ = w.pass("web")
	}
	if shown := w.address("web"); shown != from {
		t.Errorf("the status shows %s, where one of two ports is served; %s served both", shown, from)
	}
}

// answers reports whether a CLB with the address has a running listener of the Service.
func (w *world) answers(name, address string) bool {
	w.t.Helper()
	all, err := w.api.DescribeLoadBalancers(w.t.Context(), queryAll())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, lb := range all {
		if lb.Address != address {
			continue
		}
		listeners, err := w.api.DescribeListeners(w.t.Context(), lb.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		return slices.ContainsFunc(listeners[lb.ID], func(l alicloud.Listener) bool {
			owner, _, _ := mark.Parse(l.Description)
			return owner.Name == name && l.Status == alicloud.ListenerRunning
		})
	}
	return false
}

// TestHalfAMoveIsTornDown: a Service that goes in the middle of a move, whatever write of that went wrong, leaves nothing behind, at neither place.
func TestHalfAMoveIsTornDown(t *testing.T) {
	t.Parallel()
	for _, op := range groupChanges() {
		if !strings.HasPrefix(op.name, "moved") && !strings.HasPrefix(op.name, "group renamed") {
			continue
		}
		waits := func(m mishap) bool { return m.name == "is busy" || m.name == "is throttled" }
		tornDown(t, op, slices.DeleteFunc(mishaps(), waits), (*world).restart, func(t *testing.T, w *world, first error) {
			t.Helper()
			for name, lb := range w.state() {
				if name != edgeCLB || len(lb.Listeners) != 1 || len(lb.Groups) != 1 {
					t.Errorf("%s is left, with %v and %v; the move said %v", name, lb.Listeners, lb.Groups, first)
				}
			}
		})
	}
}
