package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestDrainedNodesMakeRoom: the only node of a Service is about to be deleted, and the CLB has no room for another one beside it: that one
// takes its place.
func TestDrainedNodesMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{BackendsPerLB: 2}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(2, 50)})
		defer func() { f.stop() }()
		for i := range 2 {
			f.createFleetNode(nodeName(i))
		}
		f.put(testService("web", 80, 81))
		f.rest()
		before := f.backendsOf("web")["30080"]
		if len(before) != 1 {
			t.Fatalf("backend servers %v, want 1", before)
		}
		f.changeNode(strings.TrimPrefix(before[0], "i-"), taintedBy(nodes.TaintToBeDeleted))
		time.Sleep(time.Minute)
		synctest.Wait()
		for port, after := range f.backendsOf("web") {
			if len(after) != 1 || slices.Equal(after, before) {
				t.Errorf("port %s has %v, and had %v", port, after, before)
			}
		}
	})
}

// TestWorkingBackendStaysBesideThoseInDoubt: nodes are deleted while another one may be any of them, so that their backend servers stay on
// a full CLB. A further port of the Service leaves each port less room than it has backend servers. The one that works stays.
func TestWorkingBackendStaysBesideThoseInDoubt(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 4, 50)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.addNode(name)
	}
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	w.put(svc)
	slice := testkube.EndpointSlice("web", svc.Spec.Ports[0], "10.244.0.2@a", "10.244.1.2@b", "10.244.2.2@c", "10.244.3.2@d")
	w.putSlice(slice)
	w.mustPass("web")
	for _, name := range []string{"b", "c", "d"} {
		w.deleteNode(name)
	}
	w.putNode(testNode("e", func(node *corev1.Node) { node.Spec.ProviderID, node.CreationTimestamp = "", metav1.Now() }))
	further := testkube.Port(81, corev1.ProtocolTCP)
	slice = slice.DeepCopy()
	slice.Endpoints, slice.Ports = slice.Endpoints[:1], append(slice.Ports, testkube.EndpointSlice("web", further).Ports...)
	w.putSlice(slice)
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, further) })
	for range 3 {
		_ = w.pass("web")
		if servers := w.backendsOf("web")["30080"]; !slices.Contains(servers, "i-a") {
			t.Fatalf("backend servers %v lack the one that works", servers)
		}
	}
}
