package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestRefusedCreationHoldsNoGroup: the oldest Service of a group asks for an NLB that the cloud refuses, or with a value that is not
// accepted. The next one gets one with its own attributes all the same, and the refused one its listener on that. Each asks once or twice, and
// then seldom.
func TestRefusedCreationHoldsNoGroup(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*corev1.Service){
		"no such vSwitch": func(svc *corev1.Service) {
			with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-"+svc.Name+",cn-hangzhou-b:vsw-b")(svc)
		},
		"not accepted": with(annotation.AddressType, "private"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				w.put(grouped("author", "edge", 0, testkit.TCP(81), ask))
				w.put(grouped("second", "edge", 1, testkit.TCP(82), ask))
				w.put(grouped("web", "edge", 2, testkit.TCP(80)))
				for range 10 {
					for _, name := range []string{"author", "second", "web"} {
						w.fillServices()
						_ = w.tryOne(name) //nolint:errcheck // one is refused
						w.later(time.Minute)
					}
				}
				for _, name := range []string{"author", "second", "web"} {
					if len(w.get(name).Status.LoadBalancer.Ingress) == 0 {
						t.Errorf("%s shows nothing; NLBs %v, events %q", name, w.ownersOf(), w.newEvents())
					}
				}
				creations := slices.DeleteFunc(w.calls(), func(call string) bool { return !strings.HasSuffix(call, "CreateLoadBalancer") })
				if len(creations) > 7 || len(w.ownersOf()) != 1 {
					t.Errorf("NLBs %v after %d creations", w.ownersOf(), len(creations))
				}
			})
		})
	}
}
