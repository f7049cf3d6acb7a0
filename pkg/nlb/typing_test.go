package nlb

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestChangeThatLeavesNoBackend: a change after which no backend would be left is more likely a mistake than meant: what serves stays, and
// an event says so.
func TestChangeThatLeavesNoBackend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		says   string
	}{
		"labels that no node has": {with(annotation.BackendLabel, "role=nothing"), "no node has the labels role=nothing; the backends stay"},
		"pods without interfaces": {eni, "no network interface of the VPC has the addresses 10.1.200.9"},
		"no node port":            {func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 0 }, "port 80 has no node port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(2, testkit.TCP(80))
				lb := w.balancer("web").ID
				before := w.listeners(lb)
				w.putSlice(testkit.EndpointSlice("web", tcpPort(80), "10.1.200.9@n1"))
				w.change("web", test.change)
				w.converge("web")
				mustReport(t, w.newEvents(), test.says)
				if got := w.listeners(lb); !slices.Equal(got, before) {
					t.Errorf("listeners %v, before %v", got, before)
				}
			})
		})
	}
}
