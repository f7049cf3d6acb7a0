package slb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestEditRepairsWhatWasChangedByHand: operators touch a Service to have its CLB repaired. That reads what a pass for drift reads, and
// what follows from nodes and endpoints reads nothing.
func TestEditRepairsWhatWasChangedByHand(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	id := w.onlyCLB()
	group := w.groupID("k8s/30080/web/default/c1")
	if err := w.api.DeleteListener(t.Context(), id, alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}); err != nil {
		t.Fatal(err)
	}
	server := alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-a", Port: 30080}, Weight: 1,
		Description: "k8s/30080/web/default/c1"}
	if err := w.api.SetBackends(t.Context(), group, []alicloud.Backend{server}); err != nil {
		t.Fatal(err)
	}
	w.calls()
	w.addNode("d")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"AddVServerGroupBackendServers"}, w.calls()); diff != "" {
		t.Errorf("calls for a node (-want +got):\n%s", diff)
	}
	w.change("web", func(svc *corev1.Service) {
		svc.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
	})
	w.mustPass("web")
	calls := w.calls()
	slices.Sort(calls[:4]) // the order of the reads does not matter
	want := []string{
		"DescribeLoadBalancerAttribute", "DescribeLoadBalancerListeners", "DescribeVServerGroupAttribute", "DescribeVServerGroups",
		"SetVServerGroupAttribute", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls for an edit (-want +got):\n%s", diff)
	}
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v of the next pass, want none", calls)
	}
}

// TestRenamedServiceLosesSharedBackends: two Services have the same pods in one group, where each pod can be only once. When the one that
// put them in goes, the next pass over the other one puts them in again.
func TestRenamedServiceLosesSharedBackends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	pods := []string{w.addressOf("i-a") + "@a", w.addressOf("i-b") + "@b"}
	id := w.makeCLB().ID
	shared := w.makeGroup(id, "shared", "by hand")
	for _, name := range []string{"old", "new", "apart"} {
		svc := joining(name, id, shared+":80", 80)
		annotate(svc, annotation.ForceOverrideListeners, "false")
		eni(svc)
		if name == "apart" {
			delete(svc.Annotations, key(annotation.VGroupPort))
		}
		slice := testSlice(svc.Spec.Ports[0], pods...)
		slice.Name, slice.Labels = name+"-1", map[string]string{"kubernetes.io/service-name": name}
		w.putSlice(slice)
		w.put(svc)
		w.mustPass(name)
	}
	full := len(w.state()["mine"].Groups["shared"])
	w.change("old", deleteService)
	w.mustPass("old")
	if left := len(w.state()["mine"].Groups["shared"]); left >= full {
		t.Fatalf("%d of %d backend servers are left after the tear-down: this tests nothing", left, full)
	}
	w.mustPass("new")
	if now := len(w.state()["mine"].Groups["shared"]); now != full {
		t.Errorf("%d backend servers after the next pass, want %d", now, full)
	}
	w.calls()
	w.mustPass("apart")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v for a Service that has nothing in the group, want none", calls)
	}
	w.mustPass("new")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v in the end, want none", calls)
	}
}
