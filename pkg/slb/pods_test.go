package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// addressOf returns the address of an instance's network interface, which stands in for a pod's.
func (w *world) addressOf(instance string) string {
	w.t.Helper()
	for _, i := range w.emulator.Instances() {
		if i.ID == instance {
			return i.PrivateIP
		}
	}
	w.t.Fatalf("no instance %s", instance)
	return ""
}

// podWorld makes a world whose pods have addresses of network interfaces, and the Service over them.
func podWorld(t *testing.T, change ...func(*corev1.Service)) (w *world, put func(items ...string)) {
	t.Helper()
	w = newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	for _, f := range change {
		f(svc)
	}
	put = func(items ...string) {
		for i, item := range items {
			state, name := "", item
			if name[0] == '!' {
				state, name = "!", name[1:]
			}
			name, node, _ := strings.Cut(name, "@")
			if !strings.Contains(name, ".") {
				name = w.addressOf("i-" + name)
			}
			if node == "" {
				node = "a"
			}
			items[i] = state + name + "@" + node
		}
		slice := testSlice(svc.Spec.Ports[0], items...)
		slice.Name = "web-1"
		w.putSlice(slice)
	}
	put("a", "b")
	w.put(svc)
	w.mustPass("web")
	w.calls()
	w.newEvents()
	return w, put
}

func eni(svc *corev1.Service) { svc.Annotations[annotation.BackendType] = "eni" }

func (w *world) podBackends(group string) []string {
	var servers []string
	for _, server := range w.state()["a0f5e8a1cweb"].Groups[group] {
		fields := strings.Fields(server)
		servers = append(servers, fields[0]+" "+fields[3])
	}
	slices.Sort(servers)
	return servers
}

func TestPodsAreBackends(t *testing.T) {
	t.Parallel()
	const group = "k8s/8080/web/default/c1"
	w, put := podWorld(t, eni)
	for _, step := range []struct {
		name    string
		items   []string
		calls   []string
		servers []string
	}{
		{"unchanged", []string{"b", "a"}, nil, []string{"eni 100", "eni 100"}},
		{"replaced", []string{"a", "c"}, []string{"DescribeNetworkInterfaces", "ModifyVServerGroupBackendServers"},
			[]string{"eni 100", "eni 100"}},
		{"draining", []string{"a", "!c"}, []string{"SetVServerGroupAttribute"}, []string{"eni 0", "eni 100"}},
		{"drained", []string{"a"}, []string{"RemoveVServerGroupBackendServers"}, []string{"eni 100"}},
		{"one without interface, one gone", []string{"b", "10.9.9.9"},
			[]string{"DescribeNetworkInterfaces", "DescribeVpcs", "ModifyVServerGroupBackendServers"}, []string{"eni 100"}},
		{"still without interface", []string{"b", "10.9.9.9"}, []string{"DescribeNetworkInterfaces"}, []string{"eni 100"}},
		{"one outside of the VPC", []string{"b", "192.0.2.1"}, nil, []string{"eni 100"}},
		{"back again", []string{"b", "10.9.9.9", "a"}, []string{"DescribeNetworkInterfaces", "AddVServerGroupBackendServers"},
			[]string{"eni 100", "eni 100"}},
		{"interface known at last", []string{"b"}, []string{"RemoveVServerGroupBackendServers"}, []string{"eni 100"}},
	} {
		put(step.items...)
		w.mustPass("web")
		if diff := cmp.Diff(step.calls, w.calls()); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.servers, w.podBackends(group)); diff != "" {
			t.Errorf("%s: backend servers (-want +got):\n%s", step.name, diff)
		}
	}
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the next pass writes %v", writes)
	}
}

func TestPodsOnVirtualNodesAreBackendsInEveryMode(t *testing.T) {
	t.Parallel()
	const group = "k8s/30080/web/default/c1"
	virtual := testNode("vk", labeled(nodes.LabelType, nodes.TypeVirtualKubelet), foreignProvider)
	for _, test := range []struct {
		policy corev1.ServiceExternalTrafficPolicy
		want   []string
	}{
		{corev1.ServiceExternalTrafficPolicyCluster, []string{"ecs 100", "ecs 100", "ecs 100", "eni 100"}},
		{corev1.ServiceExternalTrafficPolicyLocal, []string{"ecs 1", "eni 1"}},
	} {
		t.Run(string(test.policy), func(t *testing.T) {
			t.Parallel()
			w, put := podWorld(t, func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = test.policy })
			w.putNode(virtual)
			put("10.9.0.1@a", "c@vk")
			w.mustPass("web")
			if diff := cmp.Diff(test.want, w.podBackends(group)); diff != "" {
				t.Errorf("backend servers (-want +got):\n%s", diff)
			}
			w.wantRest("web")
		})
	}
}

func TestBackendTypeChange(t *testing.T) {
	t.Parallel()
	w, _ := podWorld(t)
	w.change("web", eni)
	w.mustPass("web")
	want := []string{"CreateVServerGroup", "SetLoadBalancerTCPListenerAttribute", "DeleteVServerGroup"}
	if diff := cmp.Diff(want, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestAddressMovesToAnotherInterface: a pod may get the address that another pod had on another network interface.
func TestAddressMovesToAnotherInterface(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	eni(svc)
	w.put(svc)
	address := w.addressOf("i-a")
	put := func(uid types.UID) {
		slice := testSlice(svc.Spec.Ports[0], address+"@a")
		slice.Name = "web-1"
		slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: uid}
		w.putSlice(slice)
	}
	reads := func() int {
		w.mustPass("web")
		return len(slices.DeleteFunc(w.calls(), func(action string) bool { return action != "DescribeNetworkInterfaces" }))
	}
	for _, step := range []struct {
		uid  types.UID
		want int
	}{{"uid-1", 1}, {"uid-1", 0}, {"uid-2", 1}, {"uid-2", 0}} {
		put(step.uid)
		if got := reads(); got != step.want {
			t.Errorf("pod %s: %d reads of network interfaces, want %d", step.uid, got, step.want)
		}
	}
}
