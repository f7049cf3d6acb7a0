package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

func sourceRanges(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }

// steps makes passes over Services for a time, each in turn, whatever comes of them.
func (w *world) steps(rounds int, pause time.Duration, names ...string) {
	w.t.Helper()
	for range rounds {
		for _, name := range names {
			w.fillServices()
			if svc, err := w.factory.Core().V1().Services().Lister().Services(testkube.Namespace).Get(name); err == nil {
				_, _ = w.Reconcile(w.t.Context(), svc)
			}
		}
		w.later(pause)
	}
}

// TestPausedServiceTakesNoPort: an older Service that is paused takes no port from one that serves.
func TestPausedServiceTakesNoPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("shop", "edge", 3, testkube.TCP(80)), newService("old", born(1), testkube.TCP(80)))
		w.change("old", with(annotation.Group, "edge"), testkube.Annotation(driver.AnnotationPaused, "true"))
		w.steps(8, 20*settle, "old", "shop")
		if owners := w.ownersOf()[edgeNLB]; !slices.Contains(owners, "tcp:80 shop") {
			t.Errorf("shop has lost its listener to a Service that is paused elsewhere: %v; events:\n%s", w.ownersOf(),
				strings.Join(w.newEvents(), "\n"))
		}
	})
}

// TestPausedServiceMovesNowhere: a paused Service that asks for a group keeps the NLB of its own, which serves it.
func TestPausedServiceMovesNowhere(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]string{"into a group": "edge", "out of a group": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				change, before := with(annotation.Group, group), newService("web", testkube.TCP(81))
				if group == "" {
					change, before = without(annotation.Group), grouped("web", "edge", 1, testkube.TCP(81))
				}
				w.groupWorld(grouped("shop", "edge", 3, testkube.TCP(80)), before)
				was := w.hostname("web")
				w.change("web", change, testkube.Annotation(driver.AnnotationPaused, "true"))
				w.steps(8, 20*settle, "web", "shop")
				if calls := writes(w.calls()); len(calls) > 0 || w.hostname("web") != was || !w.answers("web", was) {
					t.Errorf("a paused Service wrote %v; its NLB %s serves it: %v; the listeners: %v", calls, was, w.answers("web", was), w.ownersOf())
				}
			})
		})
	}
}

// TestPublicIPv6TakesNoPrivateService: an NLB that has private IPv4 addresses and public IPv6 ones is public.
func TestPublicIPv6TakesNoPrivateService(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){"IPv4": with(annotation.AddressType, "intranet"),
		"IPv6": with(annotation.IPv6AddressType, "intranet")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80), with(annotation.AddressType, "intranet"),
					with(annotation.IPVersion, "DualStack"), with(annotation.IPv6AddressType, "internet")))
				w.put(grouped("shop", "edge", 2, testkube.TCP(81), with(annotation.IPVersion, "DualStack"), change))
				w.together("shop", "web")
				lb := w.only(edgeNLB)
				if owners := w.ownersOf()[edgeNLB]; slices.Contains(owners, "tcp:81 shop") &&
					strings.EqualFold(lb.IPv6AddressType, alicloud.NLBInternet) {
					t.Errorf("shop asks for a private address, and the NLB has public IPv6 addresses: %v", owners)
				}
			})
		})
	}
}
