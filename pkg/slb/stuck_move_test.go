package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// stuckMove is a move of the Service web during which the cloud refuses its http listener on port 443.
type stuckMove struct {
	name string
	// web makes the Service as it is before, on the existing CLB with the id, if that is what it uses.
	web func(id string, ports ...int32) *corev1.Service
	// change is what makes it move.
	change func(*corev1.Service)
	// from is the name of the CLB that it leaves.
	from string
}

func stuckMoves() []stuckMove {
	inEdge := func(_ string, ports ...int32) *corev1.Service { return grouped("web", "edge", ports...) }
	toOther := func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") }
	return []stuckMove{
		{"to another group", inEdge, toOther, edgeCLB},
		{"into a group", func(_ string, ports ...int32) *corev1.Service { return testService("web", ports...) }, toOther, "a0f5e8a1cweb"},
		{"out of a group", inEdge, func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) }, edgeCLB},
		{"from an existing CLB", func(id string, ports ...int32) *corev1.Service {
			return reusing("web", id, "true", ports...)
		}, func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.LoadBalancerID))
			delete(svc.Annotations, key(annotation.ForceOverrideListeners))
			toOther(svc)
		}, "mine"},
	}
}

// begin makes a world in which the Service has begun the move and goes on to show the CLB that it leaves.
func (m *stuckMove) begin(t *testing.T, pods, alone bool, ports ...int32) (w *world, from string) {
	t.Helper()
	w = newWorld(t)
	threeNodes(w)
	web := m.web(w.makeCLB().ID, ports...)
	annotate(web, annotation.ProtocolPort, "http:443")
	if pods {
		eni(web)
		w.podsOf(web, "a", "b", "c")
	}
	services := []*corev1.Service{grouped("shop", "other", 81), web}
	if !alone {
		services = append(services, grouped("mail", "edge", 82))
	}
	w.putAll(services...)
	from = w.address("web")
	w.refuses443()
	w.change("web", m.change)
	w.isRefused("web", from)
	return w, from
}

func (w *world) refuses443() {
	w.fault(map[string]any{"action": "CreateLoadBalancerHTTPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
}

// podsOf gives the Service web pods that have the addresses of nodes.
func (w *world) podsOf(web *corev1.Service, nodes ...string) {
	w.t.Helper()
	for _, port := range web.Spec.Ports {
		var items []string
		for _, node := range nodes {
			items = append(items, w.addressOf("i-"+node)+"@"+node)
		}
		slice := testSlice(port, items...)
		slice.Name = "web-" + port.Name
		w.putSlice(slice)
	}
}

// isRefused makes passes, in which the cloud refuses a listener, and checks that the Service shows the same address.
func (w *world) isRefused(name, shows string) {
	w.t.Helper()
	for range 3 {
		if err := w.pass(name); err == nil {
			w.t.Fatal("the listener was created")
		}
		if shown := w.address(name); shown != shows {
			w.t.Fatalf("the status shows %s, want %s", shown, shows)
		}
	}
}

// replaceNodes has nodes come in the place of all others, with the pods.
func (w *world) replaceNodes() {
	w.t.Helper()
	for _, name := range []string{"d", "e", "f"} {
		w.addNode(name)
	}
	for _, name := range []string{"a", "b", "c"} {
		w.deleteNode(name)
	}
	w.podsOf(w.get("web"), "d", "e", "f")
}

// leadsFrom returns to which nodes, or to the pods on which nodes, the listeners of the Service web on a CLB lead.
func (w *world) leadsFrom(address string) map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	for _, lb := range w.balancers() {
		listeners, err := w.api.DescribeListeners(w.t.Context(), lb.ID)
		testkit.Check(w.t, err)
		for _, listener := range listeners[lb.ID] {
			owner, _, _ := mark.Parse(listener.Description)
			if lb.Address != address || owner.Name != "web" || listener.VServerGroupID == "" {
				continue
			}
			group, err := w.api.DescribeVServerGroup(w.t.Context(), listener.VServerGroupID)
			testkit.Check(w.t, err)
			found[listener.ListenerKey.String()] = w.nodesOf(group.Backends)
		}
	}
	return found
}

// nodesOf returns the nodes whose instances or pods the backend servers are that take traffic.
func (w *world) nodesOf(servers []alicloud.Backend) []string {
	nodes := []string{}
	for _, server := range servers {
		for _, instance := range w.emulator.Instances() {
			if server.Weight > 0 && (server.ServerID == instance.ID || server.ServerIP == instance.PrivateIP) {
				nodes = append(nodes, strings.TrimPrefix(instance.ID, "i-"))
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

// wantLeads checks that each of so many listeners of the Service web on a CLB leads to these nodes and no others.
func (w *world) wantLeads(when, address string, listeners int, nodes ...string) {
	w.t.Helper()
	found := w.leadsFrom(address)
	for listener, leads := range found {
		if !slices.Equal(leads, nodes) {
			w.t.Errorf("%s: listener %s of %s leads to %v, want %v", when, listener, address, leads, nodes)
		}
	}
	if len(found) != listeners {
		w.t.Errorf("%s: %s has the listeners %v, want %d", when, address, found, listeners)
	}
}

// TestStuckMoveFollowsTheNodes: while the cloud refuses a listener at the new place of a Service, the CLB that the Service leaves and still
// shows follows the nodes or pods, also after a restart, and nothing else there changes. Once the listener is accepted, the Service shows
// the new place and leaves the old one.
func TestStuckMoveFollowsTheNodes(t *testing.T) {
	t.Parallel()
	for _, move := range stuckMoves() {
		for _, pods := range []bool{false, true} {
			for _, ports := range [][]int32{{443}, {80, 443}} {
				for when, then := range knownOrNot() {
					alone := len(ports) == 1
					t.Run(fmt.Sprintf("%s, pods %v, %d ports, %s", move.name, pods, len(ports), when), func(t *testing.T) {
						t.Parallel()
						w, from := move.begin(t, pods, alone, ports...)
						then(w)
						w.replaceNodes()
						w.isRefused("web", from)
						w.wantLeads("stuck", from, len(ports), "d", "e", "f")
						w.restsRefused(from)
						w.clearFaults()
						w.arrives(from, move, len(ports))
					})
				}
			}
		}
	}
}

// restsRefused checks that passes over a Service that cannot move write nothing but what the cloud refuses.
func (w *world) restsRefused(from string) {
	w.t.Helper()
	w.calls()
	w.isRefused("web", from)
	for _, call := range writesOf(w.calls()) {
		if !strings.HasPrefix(call, "CreateLoadBalancerHTTPListener") {
			w.t.Errorf("a pass that changes nothing makes the call %s", call)
		}
	}
}

// arrives checks that the Service web completes its move, and leaves nothing at its old place.
func (w *world) arrives(from string, move stuckMove, ports int) {
	w.t.Helper()
	for range 6 {
		w.mustPass("web")
		w.mustPass("shop")
	}
	if shown := w.address("web"); shown == from {
		w.t.Errorf("the status still shows %s", from)
	}
	w.wantLeads("afterwards", w.address("web"), ports, "d", "e", "f")
	if left := w.leadsFrom(from); len(left) > 0 {
		w.t.Errorf("the old place has %v", left)
	}
	for name, servers := range w.state()[move.from].Groups {
		if strings.Contains(name, "/web/") {
			w.t.Errorf("the old place has the group %s with %v", name, servers)
		}
	}
	if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 {
		w.t.Errorf("the Record still says that %v is to be left", record.Leaving)
	}
	if found := w.orphans(); len(found) > 0 {
		w.t.Errorf("orphans: %v", found)
	}
	w.silent("afterwards", "web", "shop")
}

// TestStuckMoveWhenAWriteGoesWrong: whatever write at the old place goes wrong in whatever way while a move is stuck, the next passes bring
// it in line.
func TestStuckMoveWhenAWriteGoesWrong(t *testing.T) {
	t.Parallel()
	move := stuckMoves()[0]
	throttled := func(m mishap) bool { return m.name == "is throttled" } // which waits for the next minute
	for i, mishap := range slices.DeleteFunc(mishaps(), throttled) {
		for _, k := range testkit.Sample(i, 6) { // two groups at each place, and the listener
			t.Run(fmt.Sprintf("write %d %s", k+1, mishap.name), func(t *testing.T) {
				t.Parallel()
				w, from := move.begin(t, false, false, 80, 443)
				w.clearFaults() // only the first rule that fits counts
				w.replaceNodes()
				mishap.arm(w, k)
				w.refuses443()
				_ = w.pass("web")
				mishap.after(w)
				w.clearFaults()
				w.refuses443()
				for range maxPasses {
					_ = w.pass("web")
				}
				w.isRefused("web", from)
				w.wantLeads("stuck", from, 2, "d", "e", "f")
				w.restsRefused(from)
				w.clearFaults()
				w.arrives(from, move, 2)
			})
		}
	}
}

// TestStuckMoveFollowsEdits: a Service is edited while its move is stuck, so that its ports are to have other groups. The listeners of the
// old place stay, and the groups to which they lead follow the nodes.
func TestStuckMoveFollowsEdits(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.Service){
		"another node port": func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 },
		"another port":      func(svc *corev1.Service) { svc.Spec.Ports[0] = testkube.Port(8080, corev1.ProtocolTCP) },
		"pods":              eni,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, from := stuckMoves()[0].begin(t, false, false, 80, 443)
			w.podsOf(w.get("web"), "a", "b", "c")
			w.change("web", edit)
			w.replaceNodes()
			w.isRefused("web", from)
			leads := w.leadsFrom(from)
			if len(leads) != 2 || !slices.Equal(leads["http:443"], []string{"d", "e", "f"}) ||
				name != "another port" && !slices.Equal(leads["tcp:80"], []string{"d", "e", "f"}) {
				t.Errorf("the listeners of the old place lead to %v", leads)
			}
		})
	}
}

// TestStuckMoveIsNotEmptiedInDoubt: while nobody knows which nodes there are, the old place keeps what it has.
func TestStuckMoveIsNotEmptiedInDoubt(t *testing.T) {
	t.Parallel()
	for _, move := range stuckMoves() {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			w, from := move.begin(t, false, false, 80, 443)
			testkit.Check(t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Replace(nil, ""))
			w.isRefused("web", from)
			w.wantLeads("in doubt", from, 2, "a", "b", "c")
			w.replaceNodes()
			w.isRefused("web", from)
			w.wantLeads("once nodes are known", from, 2, "d", "e", "f")
		})
	}
}

// TestStuckMoveOpensGatesOnBothSides: while a Service moves and still shows its old place, the gate of a pod opens once the pod is a
// backend server there, too. While that cannot be read, no gate opens or closes.
func TestStuckMoveOpensGatesOnBothSides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := gateWorld(t)
		w.putPod("p", true, webGate)
		w.putPod("q", false, webGate)
		w.mustPass("web")
		from := w.address("web")
		w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
		w.isRefused("web", from)
		w.fault(map[string]any{"action": "DescribeLoadBalancerAttribute", "code": "InternalError", "status": 500, "times": 1000})
		w.putPod("q", true)
		time.Sleep(2 * backend.MinGateWait)
		w.isRefused("web", from)
		if p, q := w.gateOfPod("p"), w.gateOfPod("q"); p != registered || q != "" {
			t.Errorf("the gates are %q and %q while nobody knows the backend servers of the old place", p, q)
		}
		w.clearFaults()
		w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
		for range 2 {
			time.Sleep(backend.MaxGateWait)
			w.isRefused("web", from)
		}
		if p, q := w.gateOfPod("p"), w.gateOfPod("q"); p != registered || q != registered {
			t.Errorf("the gates are %q and %q", p, q)
		}
		w.wantLeads("stuck", from, 1, "a", "b")
	})
}

// TestStuckMoveClosesNoGates: a Service moves, and the cloud fails to create what it needs at its new place. The gate of a pod that is
// served at the old place, which the Service still shows, stays open.
func TestStuckMoveClosesNoGates(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"CreateLoadBalancer", "CreateVServerGroup", "CreateLoadBalancerTCPListener"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _ := gateWorld(t)
				w.putPod("p", true, webGate)
				w.mustPass("web")
				from := w.address("web")
				w.fault(map[string]any{"action": action, "code": "InternalError", "status": 500, "times": 1000})
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
				for range 3 {
					_ = w.pass("web")
					time.Sleep(2 * backend.MinGateWait)
				}
				if shown, gate := w.address("web"), w.gateOfPod("p"); shown != from || gate != registered {
					t.Errorf("the status shows %s, want %s, and the gate is %q", shown, from, gate)
				}
			})
		})
	}
}

// TestMoveWithoutAnyPlaceYetFollowsTheNodes: a Service moves, and the cloud fails to create its next CLB. The old one has the backend
// servers of the nodes by now.
func TestMoveWithoutAnyPlaceYetFollowsTheNodes(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80))
	from := w.address("web")
	w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "InternalError", "status": 500, "times": 1000})
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
	w.passes("web", 2)
	w.addNode("d")
	for _, name := range []string{"a", "b", "c"} {
		w.deleteNode(name)
	}
	w.passes("web", 3)
	w.wantLeads("without a next CLB", from, 1, "d")
}
