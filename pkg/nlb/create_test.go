package nlb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// udp adds a UDP port.
func udp(port int32) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(port, corev1.ProtocolUDP))
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(3, testkube.TCP(80))
		if got, want := writes(w.calls()), []string{"CreateLoadBalancer", "CreateServerGroup", "AddServersToServerGroup",
			"CreateListener"}; !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		lb := w.balancer("web")
		mustReport(t, w.newEvents(), "NLB "+lb.ID+" matches the Service; use its name as the target of a CNAME record")
		if got, want := w.listeners(lb.ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		svc := w.get("web")
		if ingress := svc.Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].Hostname != lb.DNSName || ingress[0].IP != "" {
			t.Errorf("status %+v", ingress)
		}
		if svc.Labels[driver.LabelLoadBalancerID] != lb.ID || !slices.Contains(svc.Finalizers, Finalizer) {
			t.Errorf("label %v, finalizers %v", svc.Labels, svc.Finalizers)
		}
		group, listener := w.groups("web")[0], testkit.Must(w.account.Client.ListNLBListeners(t.Context(), []string{lb.ID}))(t)[0]
		marks := []string{lb.Name, group.Name, *listener.Description, lb.ModificationProtectionReason}
		want := []string{"a0f5e8a1cweb", "k8s.30080.TCP.web.default.c1", "k8s.80.TCP.web.default.c1", "managed.by.ack"}
		if diff := cmp.Diff(want, marks); diff != "" {
			t.Errorf("marks (-want +got):\n%s", diff)
		}
		w.quiet("web")
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkube.TCP(80, 443), udp(53))
		w.calls()
		w.remove("web")
		w.converge("web")
		want := []string{"UpdateLoadBalancerProtection", "DeleteLoadBalancer", "DeleteServerGroup", "DeleteServerGroup", "DeleteServerGroup"}
		if got := writes(w.calls()); !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		if left := len(w.balancers("web")) + len(w.groups("web")); left > 0 {
			t.Errorf("%d things are left", left)
		}
		if svc := w.get("web"); len(svc.Finalizers) > 0 || len(svc.Status.LoadBalancer.Ingress) > 0 ||
			svc.Labels[driver.LabelLoadBalancerID] != "" {
			t.Errorf("left on the Service: %v %v %v", svc.Finalizers, svc.Status.LoadBalancer, svc.Labels)
		}
	})
}

func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkube.TCP(80), udp(80))
		w.calls()
		w.addNodes("n3")
		w.converge("web")
		if got, want := writes(w.calls()), []string{"AddServersToServerGroup", "AddServersToServerGroup"}; !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		w.deleteNode("n1")
		w.converge("web")
		if got, want := writes(w.calls()), []string{"RemoveServersFromServerGroup", "RemoveServersFromServerGroup"}; !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		want := []string{"TCP:80 i-n2:30080=100 i-n3:30080=100", "UDP:80 i-n2:30080=100 i-n3:30080=100"}
		if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
	})
}

// TestUDPGroupIsNotCheckedByTCP: the API would check the group by TCP connections, which no server answers.
func TestUDPGroupIsNotCheckedByTCP(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, udp(53))
		if group := w.groups("web")[0]; *group.HealthCheck.Enabled || group.Protocol != alicloud.NLBUDP {
			t.Errorf("group %+v", group)
		}
		w.quiet("web")
	})
}

// TestUDPCheckGoesOffAgain: without its annotations the check of a UDP group is what it was before them, and not one by TCP, which no
// server would pass.
func TestUDPCheckGoesOffAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), udp(53), with(annotation.HealthCheckFlag, "on"))
		w.change("web", without(annotation.HealthCheckFlag))
		w.converge("web")
		for _, group := range w.groups("web") {
			if on := *group.HealthCheck.Enabled; on != (group.Protocol == alicloud.NLBTCP) {
				t.Errorf("the check of the %s group is on: %t", group.Protocol, on)
			}
		}
		w.quiet("web")
	})
}

// TestDeletedWhileProvisioned: the deletion waits for the creation, which nothing can stop.
func TestDeletedWhileProvisioned(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.put(newService("web", testkube.TCP(80)))
		_, err := w.Reconcile(t.Context(), w.get("web"))
		testkit.Check(t, err)
		w.remove("web")
		w.converge("web")
		if left := len(w.balancers("web")) + len(w.groups("web")); left > 0 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("%d things are left, finalizers %v", left, w.get("web").Finalizers)
		}
	})
}

// TestCreationFails: the cloud gives up a creation. What is left of it is deleted, and a new load balancer takes its place.
func TestCreationFails(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.account.Fault(`{"action":"CreateLoadBalancer","times":1,"job":"failed"}`)
		w.put(newService("web", testkube.TCP(80)))
		w.converge("web")
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
	})
}
