package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestBegunPlaceOfAGroupIsLeft: a process ends after it has created the vServer group of a new Service, and before its listener. By the
// time of the next one, an older Service has taken the port. The new Service gets it on another CLB, and leaves nothing behind.
func TestBegunPlaceOfAGroupIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(born(grouped("first", "edge", 80), 0))
	w.mustPass("first")
	w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "Forbidden.RAM", "status": 403})
	w.put(born(overflowing(grouped("second", "edge", 81)), 1))
	if err := w.pass("second"); err == nil {
		t.Fatal("the listener was created")
	}
	w.change("first", func(svc *corev1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(81, corev1.ProtocolTCP))
	})
	w.clearFaults()
	w.restart()
	for range 4 {
		_, _ = w.pass("first"), w.pass("second")
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 first", "tcp:81 first"}, edgeCLB + "+": {"tcp:81 second"}})
	groups := 0
	for _, lb := range w.state() {
		groups += len(lb.Groups)
	}
	if groups != 3 {
		t.Errorf("%d vServer groups for 3 listeners", groups)
	}
	w.silent("afterwards", "first", "second")
}

// TestBegunCLBOfItsOwnIsLeft: a process ends in the middle of the creation of a CLB of the Service's own, or the answer to that is lost,
// and then the Service is put into a group. Nothing on the Service says that the CLB is there.
func TestBegunCLBOfItsOwnIsLeft(t *testing.T) {
	t.Parallel()
	after := map[string]map[string][]string{
		"edge":  {edgeCLB: {"tcp:80 web", "tcp:81 shop"}, "k8s-group-default-other": {"tcp:82 blog"}},
		"other": {edgeCLB: {"tcp:80 web"}, "k8s-group-default-other": {"tcp:81 shop", "tcp:82 blog"}},
	}
	for group := range after {
		for _, isNew := range []bool{false, true} {
			for writes := range 5 {
				t.Run(fmt.Sprintf("%s, new %v, %d writes", group, isNew, writes), func(t *testing.T) {
					t.Parallel()
					w := groupWorld(t, grouped("web", "edge", 80), grouped("blog", "other", 82))
					if isNew {
						w.put(testService("shop", 81))
					} else {
						w.put(grouped("shop", "edge", 81))
						w.mustPass("shop")
						w.change("shop", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) })
					}
					if writes > 0 {
						w.transport.limit = w.transport.writes + writes
					} else {
						w.fault(map[string]any{"action": "CreateLoadBalancer", "drop": "after", "times": 1})
					}
					if err := w.pass("shop"); err == nil {
						t.Fatal("the pass did not fail")
					}
					if writes > 0 {
						w.restart()
					}
					w.change("shop", func(svc *corev1.Service) { annotate(svc, annotation.Group, group) })
					for range 4 {
						for _, name := range []string{"shop", "web", "blog"} {
							_ = w.pass(name)
						}
					}
					wantOwners(t, w, after[group])
					w.silent("afterwards", "shop", "web", "blog")
				})
			}
		}
	}
}
