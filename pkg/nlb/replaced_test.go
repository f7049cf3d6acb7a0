package nlb

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestWorkingServerLeavesAfterItsReplacement: a node that works is taken out of load balancers. The NLB, which has room for one more, gets
// another one before it leaves.
func TestWorkingServerLeavesAfterItsReplacement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const subset = 3
		s := newStorm(t)
		s.joins("a", 2*subset)
		s.put(newService("web", testkube.TCP(80), with(annotation.BackendSubset, fmt.Sprint(subset))))
		s.rest()
		var leaves string
		for i := range s.nodes {
			name := fmt.Sprintf("n%d", i+1)
			for _, ids := range s.serversByGroup() {
				if slices.Contains(ids, testkube.InstanceOf(name)) {
					leaves = name
				}
			}
		}
		s.account.NewCalls()
		testkube.ChangeNode(t, s.kube, leaves, func(node *corev1.Node) { node.Labels[corev1.LabelNodeExcludeBalancers] = "" })
		s.rest()
		var changes []string
		for _, call := range s.account.NewCalls() {
			if (call.Action == addServers || call.Action == removeServers) && call.Code == "" {
				changes = append(changes, call.Action)
			}
		}
		if !slices.Equal(changes, []string{addServers, removeServers}) {
			t.Errorf("%v, want that one comes before %s leaves", changes, leaves)
		}
		for group, ids := range s.serversByGroup() {
			if len(ids) != subset || slices.Contains(ids, testkube.InstanceOf(leaves)) {
				t.Errorf("%s has %v", group, ids)
			}
		}
	})
}
