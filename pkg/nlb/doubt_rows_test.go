package nlb

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestTooManyPorts: nothing is built for a Service that gets too many ports. The ports that it had go on to follow the nodes.
func TestTooManyPorts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkube.TCP(80))
		w.change("web", func(svc *corev1.Service) {
			for i := range int32(2 * service.MaxPorts) {
				svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(1000+i, corev1.ProtocolTCP))
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

// TestCertificateNamedTwice: one of the additional certificates is that of the listener. The others come.
func TestCertificateNamedTwice(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"),
			with(annotation.AdditionalCertIDs, "cert-1,cert-2"))
		l := w.listener(w.balancer("web").ID, 0)
		if ids := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), l.ID))(t); !slices.Equal(ids, []string{"cert-2"}) {
			t.Errorf("additional certificates %v, want cert-2", ids)
		}
		w.quiet("web")
	})
}
