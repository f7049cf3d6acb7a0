package nlb

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// nodesOn returns which of some nodes are behind the listeners of a load balancer.
func (w *world) nodesOn(id string) string {
	w.t.Helper()
	var found []string
	for _, name := range []string{"n1", "n2", "n3"} {
		if strings.Contains(strings.Join(w.listeners(id), " "), testkit.InstanceOf(name)+":") {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// TestAnUnreadNLBHoldsNoServer: while the load balancer itself cannot be read, its groups follow the nodes.
func TestAnUnreadNLBHoldsNoServer(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkit.TCP(80))
		id := w.balancer("web").ID
		for _, action := range []string{"ListLoadBalancers", "GetLoadBalancerAttribute"} {
			w.account.Fault(`{"action":"` + action + `","code":"Forbidden.RAM","status":403,"times":0}`)
		}
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.deleteNode("n1")
		w.addNodes("n3")
		for range 10 {
			_ = w.try("web") //nolint:errcheck // it says what it cannot read
			w.later(settle)
		}
		if got := w.nodesOn(id); got != "n2 n3" {
			t.Errorf("the listener leads to %s, want n2 and n3", got)
		}
	})
}

// TestUnreadListenersHoldNoServer: a new process cannot read the listeners. The server groups follow the nodes by their marks, and nothing
// else changes.
func TestUnreadListenersHoldNoServer(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkit.TCP(80))
		id := w.balancer("web").ID
		w.account.Fault(`{"action":"ListListeners","code":"Forbidden.RAM","status":403,"times":0}`)
		w.restart()
		w.calls()
		w.deleteNode("n1")
		w.addNodes("n3")
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, testkit.Port(81, corev1.ProtocolTCP))
		})
		for range 10 {
			_ = w.try("web") //nolint:errcheck // it says what it cannot read
			w.later(settle)
		}
		for _, write := range writes(w.calls()) {
			if write != "AddServersToServerGroup" && write != "RemoveServersFromServerGroup" {
				t.Errorf("writes %s", write)
			}
		}
		mustReport(t, w.newEvents(), "ListListeners")
		w.account.ClearFaults()
		if got := w.nodesOn(id); got != "n2 n3" {
			t.Errorf("the listener leads to %s, want n2 and n3", got)
		}
		w.converge("web")
		if got := w.listeners(id); len(got) != 2 {
			t.Errorf("listeners %v, want both ports", got)
		}
	})
}

// TestUnreadSecurityGroupHoldsNoService: a new process that cannot read the security group of the source ranges leaves it after a while,
// and says so.
func TestUnreadSecurityGroupHoldsNoService(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
		w.account.Fault(`{"action":"DescribeSecurityGroups","code":"Forbidden.RAM","status":403,"times":0}`)
		w.restart()
		w.remove("web")
		w.passes("web", waits.LeftoverUnread-time.Minute)
		if len(w.get("web").Finalizers) == 0 {
			t.Error("the Service went before its time")
		}
		w.passes("web", 5*time.Minute)
		if len(w.get("web").Finalizers) > 0 {
			t.Errorf("the Service is held by %v", w.get("web").Finalizers)
		}
		mustReport(t, w.newEvents(), "stays if it exists")
	})
}

// TestUnreadServerGroupsHoldNoPreservedNLB: a new process cannot read the server groups of a deleted Service whose load balancer its author
// keeps. The Service is released after a while.
func TestUnreadServerGroupsHoldNoPreservedNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80), with(annotation.PreserveOnDelete, "true"))
		id := w.balancer("web").ID
		w.account.Fault(`{"action":"ListServerGroups","code":"Forbidden.RAM","status":403,"times":0}`)
		w.restart()
		w.remove("web")
		w.passes("web", waits.LeftoverUnread+10*time.Minute)
		if len(w.get("web").Finalizers) > 0 || len(w.listeners(id)) != 1 {
			t.Errorf("the Service is held by %v, listeners %v", w.get("web").Finalizers, w.listeners(id))
		}
	})
}

// TestARevokedNLBFollowsItsNodes: on a load balancer that the Service may not use any more, what it has follows the nodes.
func TestARevokedNLBFollowsItsNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
		w.restart()
		id := w.existing("by-hand")
		w.allow(id, testCluster)
		w.addNodes("n1", "n2")
		w.put(overriding(id))
		w.converge("web")
		testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []string{mark.TagAllow}))
		w.later(settle)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.deleteNode("n1")
		w.addNodes("n3")
		for range 10 {
			_ = w.try("web") //nolint:errcheck // it says why there are no new ports
			w.later(settle)
		}
		if got := w.nodesOn(id); got != "n2 n3" {
			t.Errorf("the listener leads to %s, want n2 and n3", got)
		}
		mustReport(t, w.newEvents(), "LoadBalancerNotReusable")
	})
}
