package provider

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestChangeThatLeavesNoBackend: a change after which no backend would be left is more likely a mistake than meant: what serves stays, and
// an event says so.
func TestChangeThatLeavesNoBackend(t *testing.T) {
	t.Parallel()
	eachProduct(t, 0, func(t *testing.T, s *side) {
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
				s.tell(t, func(w *ruled) {
					before := s.served(w)
					w.putEndpoints(w.get(), "10.1.200.9@n1")
					w.events()
					w.change(test.change)
					time.Sleep(followIn)
					if events := w.events(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, test.says) }) {
						t.Errorf("no event says %q: %q", test.says, events)
					}
					if diff := cmp.Diff(before, s.served(w)); diff != "" {
						t.Errorf("backends (-before +after):\n%s", diff)
					}
				})
			})
		}
	})
}
