package nlb

import (
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestUnclearProtocolReplacesNoListener: what protocol-port says of a port contradicts itself, or is not accepted. The listener that is
// there serves on, with its protocol and its group, also after a restart, and one event says what is wrong.
func TestUnclearProtocolReplacesNoListener(t *testing.T) {
	t.Parallel()
	for value, says := range map[string]string{
		"udp:443,tcpssl:443": "port 443 is specified twice", "tcp:443,tcpssl:443": "port 443 is specified twice",
		"tcpssl": "\"tcpssl\" is not accepted",
	} {
		for name, between := range map[string]func(*world){"in one process": func(*world) {}, "after a restart": (*world).restart} {
			t.Run(value+" "+name, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"))
					before := w.listener(w.balancer("web").ID, 0).ID
					between(w)
					w.calls()
					w.newEvents()
					w.change("web", with(annotation.ProtocolPort, value))
					w.converge("web")
					if got := writes(w.calls()); len(got) > 0 || w.listener(w.balancer("web").ID, 0).ID != before {
						t.Errorf("writes %v", got)
					}
					events := w.newEvents()
					mustReport(t, events, says)
					w.addNodes("n2")
					w.converge("web")
					if got, want := w.listeners(w.balancer("web").ID), []string{"TCPSSL:443 i-n1:30443=100 i-n2:30443=100"}; !slices.Equal(got, want) {
						t.Errorf("listeners %v, want %v", got, want)
					}
					w.change("web", with(annotation.ProtocolPort, "tcp:443"))
					w.converge("web")
					if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:443 i-n1:30443=100 i-n2:30443=100"}; !slices.Equal(got, want) {
						t.Errorf("listeners %v, want %v", got, want)
					}
					w.quiet("web")
				})
			})
		}
	}
}
