package nlb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// deadServices is how many Services have zoneNodes in each of zones, of which zoneServers are servers of each.
const deadServices, zones, zoneNodes, zoneServers = 30, 3, 12, 4

// TestDeadServersLeaveFirst: all nodes of a zone fail, or fall silent, while the quota of calls that add servers is used up. They leave all
// server groups at once, and others come when the quota lets them.
func TestDeadServersLeaveFirst(t *testing.T) {
	t.Parallel()
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		t.Run("Ready="+string(ready), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { deadLeaveFirst(t, ready) })
		})
	}
}

func deadLeaveFirst(t *testing.T, ready corev1.ConditionStatus) {
	t.Helper()
	s := newStorm(t)
	s.joinZones()
	for i := range deadServices {
		s.put(newService(fmt.Sprintf("s%02d", i), testkube.TCP(80), with(annotation.BackendSubset, fmt.Sprint(zones*zoneServers))))
	}
	s.rest()
	s.at(time.Minute)
	s.account.NewCalls()
	s.useUp(addQuota)
	began := time.Now()
	s.zoneFails(ready)
	s.rest()
	removed, added := map[string]time.Time{}, map[string]time.Time{}
	for _, call := range s.account.NewCalls() {
		group, first := call.Parameters["ServerGroupId"], added
		switch call.Action {
		case removeServers:
			first = removed
		case addServers:
		default:
			continue
		}
		if _, seen := first[group]; !seen && call.Code == "" {
			first[group] = call.Time
		}
	}
	if len(removed) != deadServices || len(added) != deadServices {
		t.Errorf("%d groups lose servers and %d get some, want %d", len(removed), len(added), deadServices)
	}
	for group, at := range removed {
		if took := at.Sub(began); took > 10*time.Second {
			t.Errorf("the dead servers of %s leave after %s", group, took)
		}
		if !at.Before(added[group]) {
			t.Errorf("others come to %s %s before the dead servers leave", group, at.Sub(added[group]))
		}
	}
}

func zoneNode(zone, i int) string { return fmt.Sprintf("n%d-%d", zone, i) }

// joinZones has nodes join in each zone.
func (s *storm) joinZones() {
	s.t.Helper()
	for zone := range zones {
		for i := range zoneNodes {
			name := zoneNode(zone, i)
			s.account.Put(testkube.InstanceOf(name), "{}")
			node := testkube.Node(name, testkube.NodeLabel(corev1.LabelTopologyZone, fmt.Sprint("zone-", zone)))
			testkit.Must(s.kube.CoreV1().Nodes().Create(s.t.Context(), node, metav1.CreateOptions{}))(s.t)
		}
	}
	synctest.Wait()
}

// zoneFails has all nodes of the first zone stop to work.
func (s *storm) zoneFails(ready corev1.ConditionStatus) {
	s.t.Helper()
	for i := range zoneNodes {
		testkube.ChangeNode(s.t, s.kube, zoneNode(0, i), func(node *corev1.Node) { testkube.Ready(node).Status = ready })
	}
}
