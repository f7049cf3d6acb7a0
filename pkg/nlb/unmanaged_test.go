package nlb

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestOwnListenersGoWithoutOverride: where a Service no longer manages the listeners of an existing NLB, its own one still goes with its
// port, or the port would lead to the Service that gets its node port next. Those whose ports it has stay, and so does that of anybody
// else.
func TestOwnListenersGoWithoutOverride(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.existing("by-hand")
		w.addNodes("n1")
		svc := overriding(id)
		svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(81, corev1.ProtocolTCP))
		w.put(svc)
		w.converge("web")
		byHand, group := "by hand", w.listener(id, 0).ServerGroupID
		_, _, err := w.account.Client.CreateNLBListener(t.Context(), alicloud.NLBListener{
			LoadBalancerID: id, Port: 9000, Protocol: alicloud.NLBTCP,
			NLBListenerSettings: alicloud.NLBListenerSettings{Description: &byHand, ServerGroupID: group},
		}, "by-hand")
		testkit.Check(t, err)
		w.later(10 * settle)
		w.change("web", with(annotation.ForceOverrideListeners, "false"))
		w.passes("web", time.Minute)
		if got := len(w.listeners(id)); got != 3 {
			t.Errorf("%d listeners once they are not managed, want all: %v", got, w.listeners(id))
		}
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
		w.passes("web", time.Minute)
		if got, want := w.listeners(id), []string{"TCP:80 i-n1:30080=100", "TCP:9000 i-n1:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		if groups := w.groups("web"); len(groups) != 1 {
			t.Errorf("groups %v, want that of port 80", groups)
		}
	})
}
