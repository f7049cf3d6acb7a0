package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestRefusedCreationHoldsNoGroup: the oldest Service of a group asks for a CLB that the cloud refuses, with a value that is not
// accepted, or is paused. The next one gets one with its own attributes all the same. Each asks once or twice, and then seldom.
func TestRefusedCreationHoldsNoGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ask     func(*corev1.Service)
		moves   bool // the next one has a CLB of its own, and joins the group
		refused int
	}{
		"no such vSwitch":           {func(svc *corev1.Service) { annotate(svc, annotation.VSwitchID, "vsw-"+svc.Name) }, false, 6},
		"no such vSwitch, and move": {func(svc *corev1.Service) { annotate(svc, annotation.VSwitchID, "vsw-"+svc.Name) }, true, 6},
		"not accepted":              {func(svc *corev1.Service) { annotate(svc, annotation.AddressType, "private") }, false, 0},
		"paused": {func(svc *corev1.Service) {
			annotate(svc, annotation.AddressType, "internet")
			svc.Annotations[driver.AnnotationPaused] = "true"
		}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				web := born(grouped("web", "edge", 80), 2)
				annotate(web, annotation.AddressType, "intranet")
				if test.moves {
					delete(web.Annotations, key(annotation.Group))
				}
				w.put(web)
				if test.moves {
					w.passes("web", 3)
				}
				for i, name := range []string{"author", "second"} {
					svc := born(grouped(name, "edge", int32(81+i)), int64(i))
					test.ask(svc)
					w.put(svc)
				}
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
				w.calls()
				for range 10 {
					for _, name := range []string{"author", "second", "web"} {
						w.fillGroups()
						w.passes(name, 2)
						time.Sleep(time.Minute)
					}
				}
				creations := slices.DeleteFunc(w.calls(), func(call string) bool { return call != "CreateLoadBalancer" })
				if got := w.ownersOf()["k8s-group-default-edge"]; !slices.Contains(got, "tcp:80 web") || len(creations) > test.refused+1 {
					t.Errorf("CLBs %v after %d creations, events %q", w.ownersOf(), len(creations), w.newEvents())
				}
			})
		})
	}
}
