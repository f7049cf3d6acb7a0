package nlb

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

type emulatorSettings = emulator.Settings

func TestReuse(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.existing("by-hand")
		w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id))
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
		w.put(newService("other", testkube.TCP(80, 81), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.ForceOverrideListeners, "true")))
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
		w.serve(1, testkube.TCP(80))
		w.put(newService("other", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.balancer("web").ID)))
		w.converge("other")
		mustReport(t, w.newEvents(), "was created by a controller")
		w.put(newService("third", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, "nlb-none")))
		w.converge("third")
		mustReport(t, w.newEvents(), "does not exist; the manager creates no replacement")
		shared := w.existing("shared")
		for _, group := range []string{w.config.ClusterID + "/infra/edge", "c2/" + testkube.Namespace + "/edge"} {
			testkit.Check(t, w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{shared},
				[]alicloud.Tag{{Key: mark.TagGroup, Value: group}}))
			w.change("third", with(annotation.LoadBalancerID, shared), with(annotation.ForceOverrideListeners, "true"))
			w.restart()
			w.calls()
			w.converge("third")
			mustReport(t, w.newEvents(), "for a group that the namespace may not join")
			if wrote := writes(w.calls()); len(wrote) > 0 {
				t.Errorf("writes %v to the NLB of group %s", wrote, group)
			}
		}
	})
}

// TestRefusedAnnotationRemoved: a Service that asked for a load balancer that it may not use, and asks no longer, matches its own again.
func TestRefusedAnnotationRemoved(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		synced := func() metav1.ConditionStatus {
			w.converge("web")
			return meta.FindStatusCondition(w.get("web").Status.Conditions, service.ConditionSynced).Status
		}
		w.change("web", with(annotation.LoadBalancerID, "nlb-none"))
		if got := synced(); got != metav1.ConditionFalse {
			t.Errorf("with the annotation: %s", got)
		}
		w.change("web", without(annotation.LoadBalancerID))
		if got := synced(); got != metav1.ConditionTrue {
			t.Errorf("without the annotation: %s", got)
		}
	})
}

// TestPreserve: the load balancer stays with its listeners, and nothing of it is the Service's any more.
func TestPreserve(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.PreserveOnDelete, "true"))
		id := w.balancer("web").ID
		w.calls()
		w.remove("web")
		w.converge("web")
		if got, want := writes(w.calls()), []string{"UpdateLoadBalancerProtection", "UntagResources", "TagResources",
			"UntagResources"}; !slices.Equal(got, want) {
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
		w.serve(1, testkube.TCP(80))
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

// TestInvalidBackendTypeAfterRestart: pods stay pods, and nodes stay nodes.
func TestInvalidBackendTypeAfterRestart(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{alicloud.BackendENI, alicloud.BackendECS} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.config.DefaultBackendENI = kind == alicloud.BackendECS
				w.restart()
				w.addNodes("n1")
				w.pods("n1")
				w.put(newService("web", testkube.TCP(80), testkube.Annotation(annotation.BackendType, kind)))
				w.converge("web")
				before := w.listeners(w.balancer("web").ID)
				w.change("web", testkube.Annotation(annotation.BackendType, "pods"))
				w.restart()
				w.converge("web")
				if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, before) {
					t.Errorf("listeners %v, want %v as before", got, before)
				}
			})
		})
	}
}
