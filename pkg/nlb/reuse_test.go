package nlb

import (
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

type emulatorSettings = emulator.Settings

func TestReuse(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.existing("by-hand")
		w.serve(1, testkit.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id))
		mustReport(t, w.newEvents(), "does not manage the listeners of an existing NLB")
		if got := w.listeners(id); len(got) > 0 {
			t.Errorf("listeners %v", got)
		}
		w.quiet("web")
		w.change("web", with(annotation.ForceOverrideListeners, "true"))
		w.converge("web")
		if got, want := w.listeners(id), []string{"TCP:80 i-n1:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
		w.put(newService("other", testkit.TCP(80, 81), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true")))
		w.converge("other")
		mustReport(t, w.newEvents(), "of Service default/web")
		w.remove("web")
		w.converge("web")
		if got, want := w.listeners(id), []string{"TCP:81 i-n1:30081=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		if len(w.get("web").Finalizers) > 0 || len(w.groups("web")) > 0 {
			t.Errorf("left: %v %v", w.get("web").Finalizers, w.groups("web"))
		}
	})
}

func TestReuseIsRefused(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80))
		w.put(newService("other", testkit.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.balancer("web").ID)))
		w.converge("other")
		mustReport(t, w.newEvents(), "was made by a cloud controller manager")
		w.put(newService("third", testkit.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, "nlb-none")))
		w.converge("third")
		mustReport(t, w.newEvents(), "does not exist; the manager creates no replacement")
	})
}

// TestPreserve: the load balancer stays with its listeners, and nothing of it is the Service's any more.
func TestPreserve(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80), with(annotation.PreserveOnDelete, "true"))
		id := w.balancer("web").ID
		w.calls()
		w.remove("web")
		w.converge("web")
		if got, want := writes(w.calls()), []string{"UpdateLoadBalancerProtection", "TagResources", "UntagResources", "UntagResources"}; !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		if got, want := w.listeners(id), []string{"TCP:80 i-n1:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		if left := len(w.balancers("web")) + len(w.groups("web")); left > 0 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("%d things are still the Service's, finalizers %v", left, w.get("web").Finalizers)
		}
	})
}

// TestDeletedByHand: a new load balancer takes the place of one that somebody deleted.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80))
		before := w.balancer("web")
		off := false
		testkit.Check(t, w.account.Client.ProtectNLB(t.Context(), before.ID, alicloud.NLBProtection{Deletion: &off}))
		testkit.Must(w.account.Client.DeleteNLB(t.Context(), before.ID))(t)
		w.later(30 * settle)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.converge("web")
		after := w.balancer("web")
		if after.ID == before.ID || w.get("web").Status.LoadBalancer.Ingress[0].Hostname != after.DNSName {
			t.Errorf("before %s, after %s", before.ID, after.ID)
		}
		if got, want := w.listeners(after.ID), []string{"TCP:80 i-n1:30080=100"}; !slices.Equal(got, want) || len(w.groups("web")) != 1 {
			t.Errorf("listeners %v, want %v; %d groups", got, want, len(w.groups("web")))
		}
		w.quiet("web")
	})
}
