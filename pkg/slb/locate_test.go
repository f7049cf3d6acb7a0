package slb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestAddressOfAnotherCLB: the address that a Service shows can be that of a CLB on which nothing is its own, because addresses are used
// again.
func TestAddressOfAnotherCLB(t *testing.T) {
	t.Parallel()
	for name, tags := range map[string][]alicloud.Tag{
		"nobody's":          nil,
		"another Service's": {{Key: mark.TagOwner, Value: "a0000000000000000000000000000000"}, {Key: mark.TagCluster, Value: testCluster}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			other := w.makeCLB(tags...)
			svc := testService("web", 80)
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: other.Address}}
			w.put(svc)
			w.converge("web")
			if got := w.get("web").Labels[driver.LabelLoadBalancerID]; got == "" || got == other.ID || len(w.lbs()) != 2 {
				t.Errorf("on %q of %d CLBs, want one of its own besides %s", got, len(w.lbs()), other.ID)
			}
		})
	}
}

// TestPartThatCannotBeRead holds back what would be made twice and no other step, and is read again.
func TestPartThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action string
		writes []string
	}{
		{"DescribeLoadBalancerListeners", []string{"RemoveVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute"}},
		{"DescribeVServerGroups", []string{"RemoveVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute"}},
	} {
		t.Run(test.action, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Scheduler, "wlc") })
			w.deleteNode("c")
			w.drift("web")
			w.fault(map[string]any{"action": test.action, "code": "InternalError", "status": 500, "times": 10})
			if err := w.pass("web"); err == nil || !strings.Contains(err.Error(), test.action) {
				t.Errorf("the pass says %v, want the failure of %s", err, test.action)
			}
			if writes := writesOf(w.calls()); !slices.Equal(writes, test.writes) {
				t.Errorf("writes %v, want %v", writes, test.writes)
			}
			w.clearFaults()
			w.converge("web")
			if got := w.state()["a0f5e8a1cweb"].Listeners["tcp:80"]["Scheduler"]; got != "wlc" {
				t.Errorf("scheduler %v after the part could be read again", got)
			}
		})
	}
}
