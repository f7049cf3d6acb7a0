package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestTooManyPorts: nothing is built for a Service that gets too many ports. The ports that it had go on to follow the nodes.
func TestTooManyPorts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkit.TCP(80))
		w.change("web", func(svc *corev1.Service) {
			for i := range int32(2 * service.MaxPorts) {
				svc.Spec.Ports = append(svc.Spec.Ports, testkit.Port(1000+i, corev1.ProtocolTCP))
			}
		})
		w.deleteNode("n1")
		w.addNodes("n3")
		w.newEvents()
		w.passes("web", time.Minute)
		mustReport(t, w.newEvents(), problem.ReasonFeatureNotSupported)
		if got := w.leadsTo(); got != "n2 n3" {
			t.Errorf("the listener leads to %q, want n2 n3", got)
		}
	})
}

// TestATagThatIsRefusedHoldsNothing: an existing NLB serves without our tag, too; marks say what is the Service's.
func TestATagThatIsRefusedHoldsNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.existing("mine")
		w.account.Fault(`{"action":"TagResources","times":0,"code":"Forbidden.RAM","status":403}`)
		w.addNodes("n1", "n2")
		w.put(newService("web", without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.ForceOverrideListeners, "true"), testkit.TCP(80)))
		w.passes("web", time.Minute)
		w.deleteNode("n1")
		w.addNodes("n3")
		w.passes("web", time.Minute)
		listeners := strings.Join(w.listeners(id), " ")
		if strings.Contains(listeners, "i-n1") || !strings.Contains(listeners, "i-n2") || !strings.Contains(listeners, "i-n3") {
			t.Errorf("listeners %s, want n2 and n3 behind them", listeners)
		}
		w.restart()
		w.remove("web")
		w.passes("web", 10*time.Minute)
		if finalizers := w.get("web").Finalizers; len(finalizers) > 0 || len(w.listeners(id)) > 0 {
			t.Errorf("after the Service: finalizers %v, listeners %v", finalizers, w.listeners(id))
		}
	})
}

// TestATagIsRemovedOnce: a tag that left the annotation is not removed again and again while something else of the Service fails.
func TestATagIsRemovedOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80), with(annotation.AdditionalTags, "team=a"))
		w.account.Fault(`{"action":"AddServersToServerGroup","times":0,"code":"InvalidParameter","status":400}`)
		w.addNodes("n2")
		w.change("web", without(annotation.AdditionalTags))
		w.calls()
		w.passes("web", 24*time.Hour)
		if n := len(slices.DeleteFunc(w.calls(), func(call string) bool { return !strings.HasPrefix(call, "UntagResources") })); n != 1 {
			t.Errorf("%d calls that remove tags, want one", n)
		}
	})
}

// TestWithdrawnEndpointSlices: an author takes machines out by deleting the EndpointSlices that name them. A moment without any is no
// withdrawal.
func TestWithdrawnEndpointSlices(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2")
		w.pods("n1", "n2")
		w.serve(0, testkit.TCP(80), eni, func(svc *corev1.Service) { svc.Spec.Selector = nil })
		indexer := w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer()
		for _, slice := range indexer.List() {
			testkit.Check(t, indexer.Delete(slice.(*discoveryv1.EndpointSlice))) //nolint:forcetypeassert // it is one
		}
		_, _ = w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // the backends count
		if got := w.leadsTo(); got != "n1 n2" {
			t.Errorf("a moment later the listener leads to %q", got)
		}
		w.passes("web", time.Minute)
		if got := w.leadsTo(); got != "" {
			t.Errorf("the listener leads to %q, want to none", got)
		}
		w.pods("n1")
		w.passes("web", time.Minute)
		if got := w.leadsTo(); got != "n1" {
			t.Errorf("after an EndpointSlice came, the listener leads to %q", got)
		}
	})
}

// TestCertificateNamedTwice: one of the additional certificates is that of the listener. The others come.
func TestCertificateNamedTwice(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"),
			with(annotation.AdditionalCertIDs, "cert-1,cert-2"))
		l := w.listener(w.balancer("web").ID, 0)
		if ids := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), l.ID))(t); !slices.Equal(ids, []string{"cert-2"}) {
			t.Errorf("additional certificates %v, want cert-2", ids)
		}
		w.quiet("web")
	})
}
