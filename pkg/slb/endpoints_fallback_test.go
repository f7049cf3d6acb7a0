package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

// TestBackendsFromEndpoints: with a role that may not list EndpointSlices the backend servers are the same.
func TestBackendsFromEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withoutSlices = true
	w.restart()
	threeNodes(w)
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	indexer := w.factory.Core().V1().Endpoints().Informer().GetIndexer()
	w.put(svc)
	for _, step := range []struct {
		name    string
		items   []string
		servers []string
	}{
		{"three", []string{"10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b", "?10.9.2.1@c"}, []string{"i-a 2", "i-b 1"}},
		{"moved", []string{"10.9.0.1@a", "10.9.2.1@c"}, []string{"i-a 1", "i-c 1"}},
		{"scaled to zero", nil, nil},
		{"back", []string{"10.9.0.1@a"}, []string{"i-a 1"}},
	} {
		if err := indexer.Add(testkube.Endpoints("web", svc.Spec.Ports[0], step.items...)); err != nil {
			t.Fatal(err)
		}
		w.mustPass("web")
		if diff := cmp.Diff(step.servers, short(w.state()["a0f5e8a1cweb"].Groups["k8s/30080/web/default/c1"])); diff != "" {
			t.Errorf("%s: backend servers (-want +got):\n%s", step.name, diff)
		}
	}
	w.calls()
	if err := indexer.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("empty cache: calls %v, want none", calls)
	}
}

func TestControllerFollowsEndpoints(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	r := run(t, func(w *world) {
		w.createNode("a")
		w.put(svc)
	}, withoutSlices)
	eventually(t, "the CLB stands", func() bool { return len(r.state()) == 1 })
	endpoints := testkube.Endpoints("web", svc.Spec.Ports[0], "10.9.0.1@a")
	if _, err := r.kube.CoreV1().Endpoints(testNamespace).Create(t.Context(), endpoints, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is a backend server", func() bool { return r.servers("k8s/30080/web/default/c1") == 1 })
}

func withoutSlices(w *world) { w.withoutSlices = true }
