package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const podGroup = "k8s/8080/web/default/c1"

// withdraw deletes the EndpointSlice of the Service.
func (w *world) withdraw() {
	w.t.Helper()
	slice := testSlice(testService("web", 80).Spec.Ports[0])
	slice.Name = "web-1"
	if err := w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Delete(slice); err != nil {
		w.t.Fatal(err)
	}
}

// TestWithdrawnEndpointSlices: an author takes machines out by deleting the EndpointSlices that name them. A moment without any is no
// withdrawal.
func TestWithdrawnEndpointSlices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, put := podWorld(t, eni)
		w.withdraw()
		wait, err := w.Reconcile(t.Context(), w.get("web"))
		if err != nil || wait > 10*time.Second {
			t.Errorf("the next pass is due after %s (%v), want within 10 s", wait, err)
		}
		if got := w.podBackends(podGroup); len(got) != 2 {
			t.Errorf("backend servers %v a moment after the EndpointSlices went, want both", got)
		}
		put("a", "b")
		w.mustPass("web")
		w.withdraw()
		w.mustPass("web")
		if got := w.podBackends(podGroup); len(got) != 2 {
			t.Errorf("backend servers %v a moment after the EndpointSlices went again, want both", got)
		}
		time.Sleep(10 * time.Second)
		w.mustPass("web")
		if got := w.podBackends(podGroup); len(got) != 0 {
			t.Errorf("backend servers %v, want none", got)
		}
		put("a")
		w.mustPass("web")
		if got := w.podBackends(podGroup); len(got) != 1 {
			t.Errorf("backend servers %v after an EndpointSlice came, want one", got)
		}
	})
}

// TestLostEndpointSlices: the control plane writes those of a Service with a selector, and one always. If they are lost, it makes them
// anew; the doubt ends all the same.
func TestLostEndpointSlices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := podWorld(t, eni, func(svc *corev1.Service) { svc.Spec.Selector = map[string]string{"app": "web"} })
		w.withdraw()
		w.mustPass("web")
		time.Sleep(time.Minute)
		w.mustPass("web")
		if got := w.podBackends(podGroup); len(got) != 2 {
			t.Errorf("backend servers %v after a minute, want both", got)
		}
		time.Sleep(15 * time.Minute)
		w.mustPass("web")
		if got := w.podBackends(podGroup); len(got) != 0 {
			t.Errorf("backend servers %v after a quarter of an hour, want none", got)
		}
	})
}

// TestTypeErrorWithoutEndpoints: the type of the backends is not accepted while there are none, and the process begins anew: listener and
// group stay what they are.
func TestTypeErrorWithoutEndpoints(t *testing.T) {
	t.Parallel()
	w, put := podWorld(t, eni, func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 0 })
	put()
	w.mustPass("web")
	w.calls()
	w.change("web", func(svc *corev1.Service) { svc.Annotations[annotation.BackendType] = "pods" })
	w.restart()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
	w.mustReport(problem.ReasonInvalidAnnotation)
	put("a")
	w.mustPass("web")
	if got := w.podBackends(podGroup); len(got) != 1 {
		t.Errorf("backend servers %v after a pod came, want it", got)
	}
}

// TestNoNodePort: nodes are to be the backends of a port that has no node port. What serves goes on to serve, and follows the pods.
func TestNoNodePort(t *testing.T) {
	t.Parallel()
	w, put := podWorld(t, eni)
	w.change("web", func(svc *corev1.Service) {
		svc.Annotations[annotation.BackendType] = "ecs"
		svc.Spec.Ports[0].NodePort = 0
	})
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
	w.mustReport(problem.ReasonSkipSyncBackends)
	put("b", "c")
	w.mustPass("web")
	if writes := writesOf(w.calls()); !slices.Equal(writes, []string{"ModifyVServerGroupBackendServers"}) {
		t.Errorf("writes %v when a pod is replaced, want its backend server replaced", writes)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 30080 })
	w.mustPass("web")
	w.wantBackends("the node port is there", "i-a 100", "i-b 100", "i-c 100")
}

// TestPodsThatCannotBeBackends: pods are to be the backends, and none of them has a network interface in the VPC. The nodes go on to serve.
func TestPodsThatCannotBeBackends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.endpoints("192.0.2.1@a")
	w.put(testService("web", 80))
	w.mustPass("web")
	w.change("web", eni)
	_ = w.pass("web") //nolint:errcheck // it may wait
	w.mustReport(problem.ReasonSkipSyncBackends)
	w.deleteNode("a")
	w.addNode("d")
	_ = w.pass("web") //nolint:errcheck // it may wait
	if got := w.state()["a0f5e8a1cweb"].serving("tcp:80"); !slices.Equal(got, []string{"i-b 100", "i-c 100", "i-d 100"}) {
		t.Errorf("the listener leads to %v, want the nodes", got)
	}
}

// TestServerThatIsNotThere: the cloud refuses a weight of a backend server that somebody has taken out: that is read at once, and the
// server is back.
func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	w.endpoints("10.9.0.1@a", "10.9.1.1@b")
	w.put(svc)
	w.mustPass("web")
	lbs, err := w.api.DescribeLoadBalancers(t.Context(), alicloud.LoadBalancerQuery{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := w.api.DescribeVServerGroups(t.Context(), lbs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	gone := alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-b", Port: 30080}}
	if err := w.api.RemoveBackends(t.Context(), groups[0].ID, []alicloud.Backend{gone}); err != nil {
		t.Fatal(err)
	}
	w.endpoints("10.9.0.1@a", "10.9.1.1@b", "10.9.1.2@b", "10.9.1.3@b", "10.9.1.4@b")
	_ = w.pass("web") // the refusal //nolint:errcheck // the next pass counts
	if err := w.pass("web"); err != nil {
		t.Logf("second pass: %v", err)
	}
	w.wantBackends("after two passes", "i-a 1", "i-b 4")
}

// TestRefusedListenerReadsNoGroups: a quota of listeners says nothing about the backends of the ports that are served.
func TestRefusedListenerReadsNoGroups(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: 3})
	threeNodes(w)
	w.put(testService("web", 80, 81, 82))
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(83, corev1.ProtocolTCP)) })
	_ = w.pass("web") //nolint:errcheck // an edit has everything read
	w.calls()
	for range 3 {
		_ = w.pass("web") //nolint:errcheck // it is refused
	}
	reads := 0
	for _, call := range w.calls() {
		if call == "DescribeVServerGroupAttribute" {
			reads++
		}
	}
	if reads > 0 {
		t.Errorf("%d groups were read", reads)
	}
}

// TestTooManyPorts: nothing is built for a Service that gets too many ports. The ports that it had go on to follow the nodes.
func TestTooManyPorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) {
		for i := range int32(2 * service.MaxPorts) {
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(1000+i, corev1.ProtocolTCP))
		}
	})
	w.deleteNode("a")
	w.addNode("d")
	w.calls()
	w.mustPass("web")
	w.mustReport(problem.ReasonFeatureNotSupported)
	w.wantBackends("nodes came and went", "i-b 100", "i-c 100", "i-d 100")
	if writes := writesOf(w.calls()); len(writes) != 1 {
		t.Errorf("writes %v, want the one of the backend servers", writes)
	}
}
