package slb

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func goesAway(n *corev1.Node) { n.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(0, 0))) }

// TestBackendsOfPodsWithNumbersOfTheirOwn: a named target port has another number in the pods of a new version; each is a
// backend server at its own.
func TestBackendsOfPodsWithNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := newBuildCase(80)
	eni(c.svc)
	c.svc.Spec.Ports[0].TargetPort = intstr.FromString("http")
	before, after := testSlice(c.svc.Spec.Ports[0], "10.9.0.1@a"), testSlice(c.svc.Spec.Ports[0], "10.9.0.2@a")
	before.Ports[0].Port, after.Ports[0].Port = ptr.To[int32](8080), ptr.To[int32](9090)
	c.slices = []*discoveryv1.EndpointSlice{before, after}
	c.enis = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2"}
	model, problems := c.build()
	want := []string{"eni-1/10.9.0.1:8080 weight 100", "eni-2/10.9.0.2:9090 weight 100"}
	if diff := cmp.Diff(want, backendLines(model)); diff != "" || len(problems) > 0 {
		t.Errorf("backend servers (-want +got), problems %v:\n%s", problems, diff)
	}
}

// TestTargetPortChange: the new port has a group of its own, which the listener changes to before the old one goes.
func TestTargetPortChange(t *testing.T) {
	t.Parallel()
	w, _ := podWorld(t, eni)
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].TargetPort = intstr.FromInt32(9090) })
	port := w.get("web").Spec.Ports[0]
	slice := testSlice(port, w.addressOf("i-a")+"@a")
	slice.Name = "web-1"
	w.putSlice(slice)
	w.mustPass("web")
	want := []string{"CreateVServerGroup", "SetLoadBalancerTCPListenerAttribute", "DeleteVServerGroup"}
	if diff := cmp.Diff(want, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"eni 100"}, w.podBackends("k8s/9090/web/default/c1")); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
}

// TestVirtualNodesInPodMode: a pod on a virtual node is a backend server like any other, whether the node is ready or not.
func TestVirtualNodesInPodMode(t *testing.T) {
	t.Parallel()
	c := newBuildCase(80)
	eni(c.svc)
	c.nodes = append(c.nodes, testNode("vk", labelled(nodes.LabelType, nodes.TypeVirtualKubelet), foreignProvider, notReady))
	c.slices = []*discoveryv1.EndpointSlice{testSlice(c.svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@vk")}
	c.enis = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2"}
	model, _ := c.build()
	if diff := cmp.Diff([]string{"eni-1/10.9.0.1:8080 weight 100", "eni-2/10.9.0.2:8080 weight 100"}, backendLines(model)); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
}

// TestMixedGroup: nodes and pods of virtual nodes stand in one group, each with the state of its own; one pod whose
// interface is not known yet keeps no other out and takes nobody away.
func TestMixedGroup(t *testing.T) {
	t.Parallel()
	c := newBuildCase(80)
	c.nodes = append(c.nodes, testNode("vk", labelled(nodes.LabelType, nodes.TypeVirtualKubelet), foreignProvider))
	c.nodes[1] = testNode("b", goesAway)
	c.slices = []*discoveryv1.EndpointSlice{testSlice(c.svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@vk", "!10.9.0.3@vk", "10.9.0.4@vk")}
	c.enis = map[string]string{"10.9.0.2": "eni-2", "10.9.0.3": "eni-3"}
	model, problems := c.build()
	want := []string{
		"i-a:30080 weight 100", "eni-2/10.9.0.2:8080 weight 100",
		"draining i-b:30080 weight 0", "draining eni-3/10.9.0.3:8080 weight 0", "doubt, gone []",
	}
	if diff := cmp.Diff(want, backendLines(model)); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{problem.ReasonSkipSyncBackends}, reasons(problems)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestNodeLabelsThatExclude: each of the four keeps a node out, whatever its value.
func TestNodeLabelsThatExclude(t *testing.T) {
	t.Parallel()
	for _, label := range []string{corev1.LabelNodeExcludeBalancers, nodes.LabelExcludeBalancerAlpha, nodes.LabelExcludeNode, nodes.LabelExcludeNodeLegacy} {
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal} {
			c := newBuildCase(80)
			c.svc.Spec.ExternalTrafficPolicy = policy
			c.nodes[1] = testNode("b", labelled(label, "false"))
			c.slices = []*discoveryv1.EndpointSlice{testSlice(c.svc.Spec.Ports[0], "10.9.0.1@a", "10.9.1.1@b")}
			model, _ := c.build()
			if len(model.Groups[0].Backends) != 1 || model.Groups[0].Backends[0].ServerID != "i-a" {
				t.Errorf("%s, %s: backend servers %v, want i-a", label, policy, backendLines(model))
			}
		}
	}
}

// TestLeavingNodesDrain: a node that is about to go gets weight 0 first and leaves when it is gone; with Local, too.
func TestLeavingNodesDrain(t *testing.T) {
	t.Parallel()
	for name, leaving := range map[string]func(*corev1.Node){"autoscaler": taintedBy(nodes.TaintToBeDeleted), "deletion": goesAway} {
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal} {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				t.Parallel()
				svc := testService("web", 80)
				svc.Spec.ExternalTrafficPolicy = policy
				w := newWorld(t)
				threeNodes(w)
				slice := testSlice(svc.Spec.Ports[0], "10.9.0.1@a", "10.9.1.1@b")
				slice.Name = "web-1"
				w.putSlice(slice)
				w.put(svc)
				w.mustPass("web")
				w.calls()
				w.putNode(testNode("b", leaving))
				w.mustPass("web")
				w.deleteNode("b")
				rest := testSlice(svc.Spec.Ports[0], "10.9.0.1@a")
				rest.Name = "web-1"
				w.putSlice(rest)
				w.mustPass("web")
				if diff := cmp.Diff([]string{"SetVServerGroupAttribute", "RemoveVServerGroupBackendServers"}, writesOf(w.calls())); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestServiceWithoutSelector: its EndpointSlices are written by hand. In pod mode an address is that of an ECS instance
// outside of the cluster, with no node and no pod.
func TestServiceWithoutSelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.addNode("far")
	w.deleteNode("far") // an instance of the VPC that is no node
	svc := testService("web", 80)
	svc.Spec.Selector = nil
	eni(svc)
	slice := testSlice(svc.Spec.Ports[0], w.addressOf("i-far"))
	w.putSlice(slice)
	w.put(svc)
	w.mustPass("web")
	if diff := cmp.Diff([]string{"eni 100"}, w.podBackends("k8s/8080/web/default/c1")); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
	if events := w.newEvents(); len(events) != 1 {
		t.Errorf("events %q, want the success alone", events)
	}
	// With nodes as backend servers, kube-proxy leads to the address; every node is a backend server.
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, annotation.BackendType) })
	w.mustPass("web")
	if n := len(w.podBackends("k8s/30080/web/default/c1")); n != 3 {
		t.Errorf("%d backend servers, want 3 nodes", n)
	}
}

// TestNoNodePorts: pods need none; with nodes, the port without one gets an event and the others are served.
func TestNoNodePorts(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"eni", "ecs"} {
		c := newBuildCase(80, 81)
		c.svc.Annotations[annotation.BackendType] = mode
		c.svc.Spec.AllocateLoadBalancerNodePorts = ptr.To(false)
		c.svc.Spec.Ports[0].NodePort = 0
		c.slices = []*discoveryv1.EndpointSlice{testSlice(c.svc.Spec.Ports[0], "10.9.0.1@a")}
		c.enis = map[string]string{"10.9.0.1": "eni-1"}
		model, problems := c.build()
		want := map[string][]string{"eni": {"tcp:80", "tcp:81"}, "ecs": {"tcp:81"}}[mode]
		if diff := cmp.Diff(want, listenerLines(model)); diff != "" {
			t.Errorf("%s: listeners (-want +got):\n%s", mode, diff)
		}
		if got := slices.Contains(reasons(problems), problem.ReasonFeatureNotSupported); got != (mode == "ecs") {
			t.Errorf("%s: problems %v", mode, problems)
		}
	}
}
