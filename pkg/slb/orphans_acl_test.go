package slb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestPreservedAccessListIsNoOrphan: the access control list of a Service that has left its listeners on purpose is an orphan with the flag
// only, as they are. One that nothing uses is an orphan, and so is one that is used by what is an orphan itself.
func TestPreservedAccessListIsNoOrphan(t *testing.T) {
	t.Parallel()
	restricted := func(svc *corev1.Service) *corev1.Service {
		svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		return svc
	}
	for name, test := range map[string]struct {
		service func(w *world) *corev1.Service
		// preserves says that the Service has the annotation, and byHand that somebody removes its finalizer.
		preserves, byHand bool
		after             func(w *world, id string)
		// without and with the flag, the list is an orphan.
		without, with bool
	}{
		"preserved":                    {service: listedAlone, preserves: true, with: true},
		"preserved in a group":         {service: listedInGroup, preserves: true, with: true},
		"preserved on an existing CLB": {service: listedOnExisting, preserves: true, with: true},
		"preserved, the listener is gone": {
			service: listedAlone, preserves: true, after: func(w *world, id string) { w.deleteListener(id, 80) }, without: true, with: true,
		},
		"preserved, another Service uses the CLB": {
			service: listedAlone, preserves: true, after: func(w *world, id string) { w.put(reusing("shop", id, "false", 81)); w.mustPass("shop") },
			with: true,
		},
		"left behind":                    {service: listedAlone, byHand: true, without: true, with: true},
		"left behind in a group":         {service: listedInGroup, byHand: true, without: true, with: true},
		"left behind on an existing CLB": {service: listedOnExisting, byHand: true, without: true, with: true},
		"removed":                        {service: listedAlone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t)
			svc := restricted(test.service(w))
			if test.preserves {
				annotate(svc, annotation.PreserveOnDelete, "true")
			}
			w.putAll(svc)
			id := w.get(svc.Name).Labels[driver.LabelLoadBalancerID]
			if !test.byHand {
				w.change(svc.Name, deleteService)
				for range 3 {
					w.mustPass(svc.Name)
				}
			}
			w.vanish(svc.Name)
			if test.after != nil {
				test.after(w, id)
			}
			for preserved, want := range map[bool]bool{false: test.without, true: test.with} {
				found := w.orphans(driver.OrphanQuery{Preserved: preserved})
				listed := slices.ContainsFunc(found, func(line string) bool { return strings.HasPrefix(line, driver.OrphanAccessList) })
				if listed != want {
					t.Errorf("with --preserved=%v: listed = %v, want %v, in %q", preserved, listed, want, found)
				}
			}
		})
	}
}

func listedAlone(*world) *corev1.Service { return testService("web", 80) }

func listedInGroup(*world) *corev1.Service { return grouped("web", "edge", 80) }

func listedOnExisting(w *world) *corev1.Service {
	return reusing("web", w.makeCLB(alicloud.Tag{Key: mark.TagReused, Value: "true"}).ID, "true", 80)
}
