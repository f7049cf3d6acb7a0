package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// setsPolicy returns the change of a Service to another external traffic policy.
func setsPolicy(policy corev1.ServiceExternalTrafficPolicy) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = policy }
}

// TestDefaultsFollowThePolicy: with the policy Local, weights are numbers of endpoints, and listeners heed them. Both follow a change of
// the policy, also after a restart; what an annotation or a hand has set stays.
func TestDefaultsFollowThePolicy(t *testing.T) {
	t.Parallel()
	byHand := func(w *world, scheduler string) {
		id := w.onlyCLB()
		err := w.api.SetListener(w.t.Context(), id,
			alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP},
				Attributes: alicloud.Attributes{"Scheduler": scheduler}})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		service func(*corev1.Service)
		change  func(*world)
		want    string
	}{
		{"default", func(*corev1.Service) {}, func(*world) {}, "wrr"},
		{"restart", func(svc *corev1.Service) { annotate(svc, annotation.DeleteProtection, "on") }, (*world).restart, "wrr"},
		{"annotation", func(svc *corev1.Service) { annotate(svc, annotation.Scheduler, "rr") }, func(*world) {}, "rr"},
		{"hand", func(*corev1.Service) {}, func(w *world) { byHand(w, "wlc"); w.drift("web"); w.mustPass("web") }, "wlc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80)
			test.service(svc)
			w.putSlice(testSlice(svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@b", "10.9.0.3@c"))
			w.put(svc)
			w.mustPass("web")
			test.change(w)
			w.change("web", setsPolicy(corev1.ServiceExternalTrafficPolicyLocal))
			w.mustPass("web")
			check := func(scheduler string, weight int) {
				t.Helper()
				for _, lb := range w.state() {
					if got := lb.Listeners["tcp:80"]["Scheduler"]; got != scheduler {
						t.Errorf("scheduler %s, want %s", got, scheduler)
					}
					for name, servers := range lb.Groups {
						for _, server := range servers {
							if !strings.Contains(server, fmt.Sprintf("weight %d ", weight)) {
								t.Errorf("%s: %s, want weight %d", name, server, weight)
							}
						}
					}
				}
			}
			check(test.want, 1)
			w.calls()
			w.mustPass("web")
			if diff := cmp.Diff([]string(nil), writesOf(w.calls())); diff != "" {
				t.Errorf("writes of the next pass (-want +got):\n%s", diff)
			}
			w.change("web", setsPolicy(corev1.ServiceExternalTrafficPolicyCluster))
			w.mustPass("web")
			check(strings.Replace(test.want, "wrr", "rr", 1), 100)
		})
	}
}
