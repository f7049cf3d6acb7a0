package slb

import (
	"slices"
	"strings"
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
		"labels that no node has": {
			testkit.Annotation(annotation.BackendLabel.Key(), "role=nothing"), "no node has the labels role=nothing; the backends stay",
		},
		"pods without interfaces": {eni, "no network interface of the VPC has the addresses 10.1.200.9"},
		"no node port":            {func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 0 }, "port 80 has no node port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			before := w.backendsOf("web")
			w.putSlice(testkit.EndpointSlice("web", testkit.Port(80, corev1.ProtocolTCP), "10.1.200.9@a"))
			w.change("web", test.change)
			w.mustPass("web")
			if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, test.says) }) {
				t.Errorf("no event says %q: %q", test.says, events)
			}
			if got := w.backendsOf("web"); len(got) == 0 || !slices.Equal(got["30080"], before["30080"]) {
				t.Errorf("backends %v, before %v", got, before)
			}
		})
	}
}
