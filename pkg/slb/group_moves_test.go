package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
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
		{"into a group", testService("web", 80), func(svc *corev1.Service) {
			annotate(svc, annotation.Group, "edge")
		}, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}}},
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
				if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 {
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

// halfMoved makes a world in which the Service web moves from the group edge to the group other, where the cloud refuses one of its two
// ports. It returns the address that web shows.
func halfMoved(t *testing.T, having ...func(*corev1.Service)) (w *world, from string) {
	t.Helper()
	web := grouped("web", "edge", 80, 443)
	annotate(web, annotation.ProtocolPort, "http:443")
	for _, have := range having {
		have(web)
	}
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

// TestMovedServiceLeavesWithoutPorts: a Service that shows its new place leaves the old one, even if an older Service takes its port in the
// meantime. That it shows the new place is known whatever it shows of it, and after a restart.
func TestMovedServiceLeavesWithoutPorts(t *testing.T) {
	t.Parallel()
	for name, shows := range map[string]func(*corev1.Service){
		"the address of the CLB": func(*corev1.Service) {},
		"a name":                 func(svc *corev1.Service) { annotate(svc, annotation.Hostname, "web.example.com") },
		"an elastic address":     func(svc *corev1.Service) { annotate(svc, annotation.ExternalIPType, annotation.ExternalEIP) },
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", name, restarted), func(t *testing.T) {
				t.Parallel()
				web := testService("web", 80)
				shows(web)
				w := groupWorld(t, grouped("shop", "edge", 81), web)
				for _, lb := range w.balancers() {
					w.bindEIP(lb.ID)
				}
				w.drift("web")
				w.mustPass("web")
				w.fault(map[string]any{"action": "DeleteLoadBalancer", "code": "OperationDenied.Test", "status": 400, "times": 100})
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
				for range 2 {
					_ = w.pass("web") // it fails to delete the CLB
				}
				if record, _ := driver.RecordOn(w.get("web")); record.Shows != w.balancer(edgeCLB).ID || len(record.Leaving) == 0 {
					t.Fatalf("the Service is not in the middle of its move: %+v", record)
				}
				w.put(born(grouped("first", "edge", 80), -1))
				w.clearFaults()
				if restarted {
					w.restart()
				}
				for range 4 {
					_, _ = w.pass("first"), w.pass("web") // after a restart, one of them waits until all Services are known
				}
				wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 first", "tcp:81 shop"}})
				w.silent("afterwards", "first", "shop", "web")
			})
		}
	}
}

// TestMoveWithNameWaitsForAllPorts: a Service that shows the same name before and after its move leaves the old place no sooner than
// another one, also after a restart in the middle.
func TestMoveWithNameWaitsForAllPorts(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		w, _ := halfMoved(t, func(svc *corev1.Service) { annotate(svc, annotation.Hostname, "web.example.com") })
		_ = w.pass("web")
		if restarted {
			w.restart()
		}
		for range 3 {
			if err := w.pass("web"); err == nil {
				t.Fatal("the listener was created")
			}
		}
		wantOwners(t, w, map[string][]string{edgeCLB: {"http:443 web", "tcp:80 web"}, "k8s-group-default-other": {"tcp:80 web", "tcp:81 shop"}})
		w.clearFaults()
		for range 3 {
			w.mustPass("web")
		}
		wantOwners(t, w, map[string][]string{"k8s-group-default-other": {"http:443 web", "tcp:80 web", "tcp:81 shop"}})
	}
}

// TestMoveFromGoneCLBShowsNewPlace: a Service whose old CLB is gone shows the new one although only one of its two ports is served there,
// because the cloud refuses the other one or somebody has it: the old address answers nobody.
func TestMoveFromGoneCLBShowsNewPlace(t *testing.T) {
	t.Parallel()
	for name, shop := range map[string]*corev1.Service{"refused": grouped("shop", "edge", 81), "taken": grouped("shop", "edge", 443)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := testService("web", 80, 443)
			annotate(web, annotation.ProtocolPort, "http:443")
			w := groupWorld(t, shop, born(web, 1))
			w.deleteByHand(w.address("web"))
			w.fault(map[string]any{"action": "CreateLoadBalancerHTTPListener", "code": "OperationDenied.Test", "status": 400, "times": 100})
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
			for range 4 {
				_ = w.pass("web")
			}
			if shown := w.address("web"); shown != w.address("shop") || !w.answers("web", shown) {
				t.Errorf("the status shows %s, and the CLB of the group has the address %s", shown, w.address("shop"))
			}
			w.clearFaults()
			w.drift("web")
			for range 3 {
				_ = w.pass("web")
			}
			if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 || record.Shows != "" {
				t.Errorf("the Record still says that %v is to be left", record.Leaving)
			}
		})
	}
}

// balancers returns the CLBs of the account.
func (w *world) balancers() []alicloud.LoadBalancer {
	w.t.Helper()
	all, err := w.api.DescribeLoadBalancers(w.t.Context(), queryAll())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// balancer returns the CLB with the name.
func (w *world) balancer(name string) alicloud.LoadBalancer {
	w.t.Helper()
	for _, lb := range w.balancers() {
		if lb.Name == name {
			return lb
		}
	}
	w.t.Fatalf("no CLB has the name %s", name)
	return alicloud.LoadBalancer{}
}

// deleteByHand deletes the CLB with the address as somebody else does.
func (w *world) deleteByHand(address string) {
	w.t.Helper()
	for _, lb := range w.balancers() {
		if lb.Address != address {
			continue
		}
		if err := w.api.SetDeleteProtection(w.t.Context(), lb.ID, alicloud.ProtectionOff); err != nil {
			w.t.Fatal(err)
		}
		if err := w.api.DeleteLoadBalancer(w.t.Context(), lb.ID); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestMoveMeetsATakenPort: in the middle of a move, somebody else takes a port at the new place. The Service goes back to the old one,
// which serves all ports and follows edits and nodes, and leaves nothing at the new one. It moves once the port is free.
func TestMoveMeetsATakenPort(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
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
			if restarted {
				w.restart()
			}
			w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0] = testkube.Port(8080, corev1.ProtocolTCP) })
			w.addNode("later")
			for range 4 {
				_, _ = w.pass("first"), w.pass("web")
			}
			if shown := w.address("web"); shown != from {
				t.Errorf("the status shows %s, where one of two ports is served; %s served both", shown, from)
			}
			wantOwners(t, w,
				map[string][]string{edgeCLB: {"http:443 web", "tcp:8080 web"}, "k8s-group-default-other": {"tcp:443 first", "tcp:81 shop"}})
			for port, backends := range w.backendsOf("web") {
				if len(backends) != 4 {
					t.Errorf("port %s has the backend servers %v, want those of 4 nodes", port, backends)
				}
			}
			w.change("first", deleteService)
			w.mustPass("first")
			w.vanish("first")
			for range 4 {
				w.mustPass("web")
				w.mustPass("shop")
			}
			wantOwners(t, w, map[string][]string{"k8s-group-default-other": {"http:443 web", "tcp:8080 web", "tcp:81 shop"}})
			w.silent("afterwards", "web", "shop")
		})
	}
}

// TestMoveIsTurnedBack: a Service that asks for its old group again, before it shows another place, is on the CLB of that as if it had
// never left, also if somebody there has the port that it asks for by now.
func TestMoveIsTurnedBack(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		w, from := halfMoved(t)
		_ = w.pass("web")
		w.put(born(grouped("first", "edge", 81), -1))
		w.mustPass("first")
		w.change("web", func(svc *corev1.Service) {
			annotate(svc, annotation.Group, "edge")
			svc.Spec.Ports[0] = testkube.Port(81, corev1.ProtocolTCP)
		})
		w.clearFaults()
		if restarted {
			w.restart()
		}
		for range 4 {
			_ = w.pass("web")
		}
		if shown := w.address("web"); shown != from {
			t.Errorf("the status shows %s, want %s", shown, from)
		}
		wantOwners(t, w, map[string][]string{edgeCLB: {"http:443 web", "tcp:81 first"}, "k8s-group-default-other": {"tcp:81 shop"}})
		w.silent("afterwards", "web", "first", "shop")
	}
}

// answers reports whether a CLB with the address has a running listener of the Service.
func (w *world) answers(name, address string) bool {
	w.t.Helper()
	for _, lb := range w.balancers() {
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

// TestHalfAMoveIsTornDown: a Service that goes in the middle of a move, whatever write of that went wrong, leaves nothing behind, at
// neither place.
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

// TestMoveFromGoneCLBWithAnotherOne: a Service changes its mind in the middle of a move, so that it leaves two places, and the one that it
// shows is deleted by hand. It shows the new one, which serves a port.
func TestMoveFromGoneCLBWithAnotherOne(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			web := testService("web", 80, 443)
			annotate(web, annotation.ProtocolPort, "http:443")
			w := groupWorld(t, grouped("shop", "edge", 81), grouped("mail", "other", 82), born(web, 1))
			from := w.address("web")
			w.fault(map[string]any{"action": "CreateLoadBalancerHTTPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
			for _, group := range []string{"edge", "other"} {
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, group) })
				for range 2 {
					_ = w.pass("web")
				}
			}
			w.deleteByHand(from)
			if restarted {
				w.restart()
			}
			for range 8 {
				_ = w.pass("web")
			}
			if shown := w.address("web"); shown != w.address("mail") {
				t.Errorf("the status shows %s, which answers nobody; %s serves a port", shown, w.address("mail"))
			}
		})
	}
}

// TestGoneCLBIsLeftWithoutPorts: the CLB of a Service is deleted while another Service has its port in the group that it is to join. It is
// served nowhere then, and no longer says that it leaves the CLB that is gone.
func TestGoneCLBIsLeftWithoutPorts(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("shop", "edge", 80), born(testService("web", 80), 1))
			w.deleteByHand(w.address("web"))
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
			for i := range 8 {
				if _ = w.pass("web"); restarted && i == 0 {
					w.restart()
				}
			}
			if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 || record.Group == "" {
				t.Errorf("the Service is not in its group, or has something to leave: %+v", record)
			}
		})
	}
}
