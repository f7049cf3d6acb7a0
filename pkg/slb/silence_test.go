package slb

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestSilentNodeStaysForAWhile: after an outage of the API server nodes are silent for seconds. Their backend servers stay, the Service
// is looked at again when that may be no coincidence any more, and then they go.
func TestSilentNodeStaysForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.mustPass("web")
	w.calls()

	silentSince := func(since time.Time) func(*corev1.Node) {
		return func(n *corev1.Node) {
			testkube.Ready(n).Status, testkube.Ready(n).LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(since)
		}
	}
	w.putNode(testNode("b", silentSince(time.Now())))
	next, err := w.Reconcile(t.Context(), w.get("web"))
	if err != nil || next <= 0 || next > waits.NodeSilent {
		t.Errorf("the next pass is due after %s (%v), want after %s at the latest", next, err, waits.NodeSilent)
	}
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls when a node has fallen silent: %v", calls)
	}
	w.putNode(testNode("b", silentSince(time.Now().Add(-waits.NodeSilent))))
	w.mustPass("web")
	if calls := w.calls(); !slices.Equal(calls, []string{"RemoveVServerGroupBackendServers"}) {
		t.Errorf("calls when it has been silent for %s: %v", waits.NodeSilent, calls)
	}
}
