package slb

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

func goesAway(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(time.Unix(0, 0))) }

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

// TestLeavingNodesDrain: a node that is about to go gets weight 0 first and leaves when it is gone; with Local, too.
func TestLeavingNodesDrain(t *testing.T) {
	t.Parallel()
	for name, leaving := range map[string]func(*corev1.Node){"autoscaler": taintedBy(nodes.TaintToBeDeleted), "deletion": goesAway} {
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyLocal} {
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
