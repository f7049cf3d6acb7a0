package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func threeNodes(w *world) {
	w.addNode("a")
	w.addNode("b")
	w.addNode("c")
}

func TestCreateCostsFiveCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.mustPass("web")

	want := []string{"DescribeLoadBalancers", "CreateLoadBalancer", "CreateVServerGroup", "CreateLoadBalancerTCPListener",
		"StartLoadBalancerListener"}
	if diff := cmp.Diff(want, w.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	const group = "k8s/30080/web/default/c1"
	lb := w.state()["a0f5e8a1cweb"]
	wantBackends := []string{
		"ecs i-a:30080 weight 100 " + group, "ecs i-b:30080 weight 100 " + group, "ecs i-c:30080 weight 100 " + group,
	}
	if diff := cmp.Diff(map[string][]string{group: wantBackends}, lb.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{mark.TagOwner: "a0f5e8a1cweb", mark.TagCluster: testCluster}, lb.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	got := [5]string{lb.AddressType, lb.DeleteProtection, lb.Protection, lb.Reason, lb.ChargeType}
	if want := [5]string{"intranet", "on", "ConsoleProtection", "managed.by.ack", "PayByCLCU"}; got != want {
		t.Errorf("attributes = %v, want %v", got, want)
	}
	listener := lb.Listeners["tcp:80"]
	if listener["Status"] != "running" || listener["Description"] != "k8s/80/web/default/c1" || listener["Scheduler"] != "rr" ||
		listener["VServerGroupId"] != group {
		t.Errorf("listener = %v", listener)
	}
}

func TestCreateOfFourPortsCostsFourteenCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80, 81, 82, 83))
	w.mustPass("web")
	if calls := w.calls(); len(calls) > 14 {
		t.Errorf("%d calls, want at most 14: %v", len(calls), calls)
	}
}

func TestServiceShowsItsCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.mustPass("web")

	svc := w.get("web")
	if diff := cmp.Diff([]string{Finalizer}, svc.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if len(svc.Status.LoadBalancer.Ingress) != 1 || svc.Status.LoadBalancer.Ingress[0].IP == "" {
		t.Errorf("status = %v, want one address", svc.Status.LoadBalancer)
	}
	if svc.Labels[driver.LabelLoadBalancerID] == "" {
		t.Errorf("label %s is missing", driver.LabelLoadBalancerID)
	}
	if len(svc.Status.Conditions) != 2 || w.synced("web").Status != metav1.ConditionTrue {
		t.Errorf("conditions = %v, want one that is true, and the Record", svc.Status.Conditions)
	}
	events := w.newEvents()
	if len(events) != 1 || events[0][:len("Normal EnsuredLoadBalancer")] != "Normal EnsuredLoadBalancer" {
		t.Errorf("events = %q, want one EnsuredLoadBalancer", events)
	}
}

// settled makes a world with one Service that has its CLB.
func settled(t *testing.T, svc *corev1.Service) *world {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	w.put(svc)
	w.mustPass(svc.Name)
	w.calls()
	w.newEvents()
	return w
}

func TestUnchangedServiceCostsNothing(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80, 443))
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) { svc.Annotations["example.com/note"] = "unrelated" })
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls = %v, want none", calls)
	}
	if events := w.newEvents(); len(events) != 0 {
		t.Errorf("events = %v, want none", events)
	}
}

func TestDriftPassReadsAndWritesNothing(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.drift("web")
	w.mustPass("web")
	want := []string{"DescribeLoadBalancerAttribute", "DescribeLoadBalancerListeners", "DescribeVServerGroups",
		"DescribeVServerGroupAttribute"}
	if diff := cmp.Diff(want, w.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestNodeChangesCostOneWritePerPort(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*world)
		want   []string
	}{
		{"added", func(w *world) { w.addNode("d") }, []string{"AddVServerGroupBackendServers"}},
		{"deleted", func(w *world) { w.deleteNode("c") }, []string{"RemoveVServerGroupBackendServers"}},
		{"replaced", func(w *world) { w.deleteNode("c"); w.addNode("d") }, []string{"ModifyVServerGroupBackendServers"}},
		{"released with its instance", func(w *world) { w.emulator.ReleaseInstance("i-c"); w.deleteNode("c") },
			[]string{"RemoveVServerGroupBackendServers"}},
		{"not ready", func(w *world) {
			w.putNode(testNode("c", func(n *corev1.Node) { testkube.Ready(n).Status = corev1.ConditionUnknown }))
		}, []string{"RemoveVServerGroupBackendServers"}},
		{"about to be removed by the autoscaler", func(w *world) {
			w.putNode(testNode("c", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: nodes.TaintToBeDeleted}} }))
		}, []string{"SetVServerGroupAttribute"}},
		{"heartbeat", func(w *world) {
			w.putNode(testNode("c", func(n *corev1.Node) { n.ResourceVersion = "2" }))
		}, nil},
		{"all not ready", func(w *world) {
			for _, name := range []string{"a", "b", "c"} {
				w.putNode(testNode(name, func(n *corev1.Node) { testkube.Ready(n).Status = corev1.ConditionUnknown }))
			}
		}, nil},
		{"cache empty", func(w *world) { w.deleteNode("a"); w.deleteNode("b"); w.deleteNode("c") }, nil},
		{"deleted while another is unknown", func(w *world) {
			w.deleteNode("c")
			w.putNode(testNode("d", func(n *corev1.Node) { n.Spec.ProviderID = "" }))
		}, nil},
		{"not ready while another is unknown", func(w *world) {
			w.putNode(testNode("c", func(n *corev1.Node) { testkube.Ready(n).Status = corev1.ConditionFalse }))
			w.putNode(testNode("d", func(n *corev1.Node) { n.Spec.ProviderID = "" }))
		}, []string{"RemoveVServerGroupBackendServers"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			test.change(w)
			w.mustPass("web")
			if diff := cmp.Diff(test.want, w.calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			w.drift("web")
			w.mustPass("web")
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("the next pass writes %v", writes)
			}
		})
	}
}

func TestReleasedInstanceKeepsNoOtherOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.emulator.ReleaseInstance("i-b") // its Node is still there and ready
	w.put(testService("web", 80))
	if err := w.pass("web"); err == nil {
		t.Error("no error although a node is no backend server")
	}
	group := "k8s/30080/web/default/c1"
	want := []string{"ecs i-a:30080 weight 100 " + group, "ecs i-c:30080 weight 100 " + group}
	if diff := cmp.Diff(want, w.state()["a0f5e8a1cweb"].Groups[group]); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
	if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 1 {
		t.Errorf("status = %v, want the address although one node is bad", ingress)
	}
	w.newEvents()
	for range 3 {
		if err := w.pass("web"); err == nil {
			t.Error("no error although a node is no backend server")
		}
	}
	if events := w.newEvents(); len(events) != 0 {
		t.Errorf("events = %q, want none: the failure has its event already", events)
	}
	w.deleteNode("b")
	w.mustPass("web")
}

func TestDelete(t *testing.T) {
	t.Parallel()
	deleted := func(svc *corev1.Service) { now := metav1.Now(); svc.DeletionTimestamp = &now }
	retyped := func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		before func(*world)
		want   []string
	}{
		{"deletion", deleted, func(*world) {},
			[]string{"DescribeLoadBalancers", "DescribeLoadBalancerListeners", "SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"}},
		{"type change", retyped, func(*world) {},
			[]string{"DescribeLoadBalancers", "DescribeLoadBalancerListeners", "SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"}},
		{"class annotation", func(svc *corev1.Service) { svc.Annotations[driver.AnnotationClass] = "other" }, func(*world) {},
			[]string{"DescribeLoadBalancers", "DescribeLoadBalancerListeners", "SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"}},
		{"after a restart", deleted, (*world).restart,
			[]string{"DescribeLoadBalancers", "DescribeLoadBalancerListeners", "SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"}},
		{"CLB gone", deleted, func(w *world) { w.removeCLB() }, []string{
			"DescribeLoadBalancers",
			"DescribeLoadBalancers", "DescribeLoadBalancerAttribute=InvalidLoadBalancerId.NotFound",
			"DescribeLoadBalancers", "DescribeLoadBalancerAttribute=InvalidLoadBalancerId.NotFound", // one answer is no proof
			"DescribeVpcs", "DescribeAccessControlLists",
		}},
		{"CLB gone, after a restart", deleted, func(w *world) { w.removeCLB(); w.restart() }, []string{
			"DescribeLoadBalancers", "DescribeLoadBalancerAttribute=InvalidLoadBalancerId.NotFound",
			"DescribeLoadBalancers",                                                                 // by the address that it shows
			"DescribeLoadBalancers", "DescribeLoadBalancerAttribute=InvalidLoadBalancerId.NotFound", // one answer is no proof
			"DescribeVpcs", "DescribeAccessControlLists", // nobody is left to say that there is none
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			test.before(w)
			w.calls()
			w.change("web", test.change)
			w.mustPass("web")
			if diff := cmp.Diff(test.want, w.calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if left := w.state(); len(left) != 0 {
				t.Errorf("left over: %v", left)
			}
			svc := w.get("web")
			if len(svc.Finalizers) != 0 || len(svc.Labels) != 0 || len(svc.Status.LoadBalancer.Ingress) != 0 {
				t.Errorf("left on the Service: %v %v %v", svc.Finalizers, svc.Labels, svc.Status.LoadBalancer)
			}
			w.mustPass("web")
			if calls := w.calls(); len(calls) != 0 {
				t.Errorf("the next pass calls %v", calls)
			}
		})
	}
}

// removeCLB deletes all CLBs behind the reconciler's back.
func (w *world) removeCLB() {
	w.t.Helper()
	all, err := w.api.DescribeLoadBalancers(w.t.Context(), queryAll())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, lb := range all {
		if err := w.api.SetDeleteProtection(w.t.Context(), lb.ID, "off"); err != nil {
			w.t.Fatal(err)
		}
		if err := w.api.DeleteLoadBalancer(w.t.Context(), lb.ID); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestToggledServiceGetsANewCLB(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	for range 3 {
		w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		w.mustPass("web")
		w.restart() // the id of the lost CLB is remembered nowhere
		w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
		for range 5 {
			if w.pass("web") == nil {
				break
			}
		}
		w.mustPass("web")
		if n := len(w.state()); n != 1 {
			t.Fatalf("%d CLBs, want 1", n)
		}
	}
}

// TestServiceThatComesBackIsProtectedAgain: a removal that was begun and undone leaves no trace.
func TestServiceThatComesBackIsProtectedAgain(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	before := w.state()
	w.fault(map[string]any{"action": "DeleteLoadBalancer", "code": "OperationDenied", "status": 400})
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	if err := w.pass("web"); err == nil || w.state()["a0f5e8a1cweb"].DeleteProtection != "off" {
		t.Fatalf("the removal was not begun: %v", err)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
	w.converge("web")
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
}

func TestLostCLBIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	before := w.get("web").Labels[driver.LabelLoadBalancerID]
	w.removeCLB()
	w.drift("web")
	w.mustPass("web")
	after := w.get("web").Labels[driver.LabelLoadBalancerID]
	if n := len(w.state()); n != 1 || after == before {
		t.Errorf("%d CLBs, id %s, before %s; want one new", n, after, before)
	}
	events := w.newEvents()
	if len(events) != 1 || events[0][:len("Warning "+problem.ReasonLoadBalancerRecreated)] != "Warning "+problem.ReasonLoadBalancerRecreated {
		t.Errorf("events = %q, want one with the new address", events)
	}
}

func queryAll() (query alicloud.LoadBalancerQuery) { return query }
