package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestDrainedNodesMakeRoom: the only node of a Service is about to be deleted, and the CLB has no room for another one beside it: that one takes its place.
func TestDrainedNodesMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{BackendsPerLB: 2}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(2, 50)})
		defer func() { f.stop() }()
		names := map[string]string{}
		for i := range 2 {
			f.createFleetNode(nodeName(i))
			names["i-"+nodeName(i)] = nodeName(i)
		}
		f.put(testService("web", 80, 81))
		f.rest()
		before := f.backendsOf("web")["30080"]
		if len(before) != 1 {
			t.Fatalf("backend servers %v, want 1", before)
		}
		node := testkit.Must(f.kube.CoreV1().Nodes().Get(t.Context(), names[before[0]], metav1.GetOptions{}))(t)
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule})
		testkit.Must(f.kube.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}))(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		for port, after := range f.backendsOf("web") {
			if len(after) != 1 || slices.Equal(after, before) {
				t.Errorf("port %s has %v, and had %v", port, after, before)
			}
		}
	})
}
