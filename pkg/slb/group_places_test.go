package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestReturnedServiceUsesNoFormerGroup: a Service of a group that becomes a ClusterIP and comes back with a CLB of its own does not keep
// the CLB of the group.
func TestReturnedServiceUsesNoFormerGroup(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
	w.change("web", asClusterIP)
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) {
		asLoadBalancer(svc)
		delete(svc.Annotations, key(annotation.Group))
	})
	w.passes("web", 3)
	w.change("shop", deleteService)
	w.passes("shop", 3)
	wantOwners(t, w, map[string][]string{"a0f5e8a1cweb": {"tcp:80 web"}})
}

// TestMoveIntoAGroupLeavesATwin: a Service with a CLB of its own joins a group. Another CLB with a copy of its owner tag stays.
func TestMoveIntoAGroupLeavesATwin(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("shop", "edge", 81), born(testService("web", 80), 1))
			w.makeListener(w.makeTwin("web").ID, 9000, "by hand")
			then(w)
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
			w.passes("web", 8)
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}, "mine": {"tcp:9000 "}})
		})
	}
}

// TestNextCLBOfAGroupStays: a Service has created the next CLB of its group, and cannot create its listener there yet. The CLB stays when
// another Service leaves the group.
func TestNextCLBOfAGroupStays(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			young := overflowing(grouped("young", "edge", 443))
			annotate(young, annotation.ProtocolPort, "http:443")
			w := groupWorld(t, grouped("shop", "edge", 81), grouped("mail", "edge", 82), young)
			w.put(born(grouped("first", "edge", 443), -1))
			w.fault(map[string]any{"action": "CreateLoadBalancerHTTPListener", "code": "OperationDenied.Test", "status": 400, "times": 100})
			for range 3 {
				w.passes("first", 1)
				w.passes("young", 1)
			}
			if _, there := w.ownersOf()[edgeCLB+"+"]; !there {
				t.Fatalf("no next CLB: %v", w.ownersOf())
			}
			then(w)
			w.change("shop", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) })
			w.passes("shop", 6)
			if _, there := w.ownersOf()[edgeCLB+"+"]; !there {
				t.Errorf("the next CLB is deleted: %v", w.ownersOf())
			}
		})
	}
}

// TestGuestOnUnusedCLBOfAGroup: only a Service that names it by its ID uses a CLB of a group. The Services of the group write nothing
// because of that.
func TestGuestOnUnusedCLBOfAGroup(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("first", "edge", 80), overflowing(grouped("young", "edge", 80)))
	w.put(reusing("guest", w.get("young").Labels[driver.LabelLoadBalancerID], "true", 8080))
	w.passes("guest", 1)
	w.change("young", deleteService)
	w.passes("young", 3)
	w.vanish("young")
	for range 3 {
		w.drift("first")
		w.mustPass("first")
	}
	w.newEvents()
	w.kube.ClearActions()
	for range 3 {
		w.drift("first")
		w.mustPass("first")
	}
	for _, action := range w.kube.Actions() {
		if action.GetVerb() == "patch" {
			t.Errorf("written: %v, events %v", action, w.newEvents())
		}
	}
	w.change("guest", deleteService)
	w.passes("guest", 3)
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 first"}, edgeCLB + "+": {}})
	w.vanish("guest")
	for range 3 { // nobody else deletes it, and orphans lists none of a group that has Services
		w.drift("first")
		w.passes("first", 2)
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 first"}})
}

// TestPreservingServiceGivesUpItsPort: a Service that moves to the next CLB of its group, because an older one has a claim to its port,
// leaves no listener, although its annotation asks to keep the CLB when the Service is deleted.
func TestPreservingServiceGivesUpItsPort(t *testing.T) {
	t.Parallel()
	young := overflowing(grouped("young", "edge", 80))
	annotate(young, annotation.PreserveOnDelete, "true")
	w := groupWorld(t, young)
	w.put(born(grouped("old", "edge", 80), -1))
	for range 6 {
		for _, name := range []string{"old", "young"} {
			w.drift(name)
			w.passes(name, 1)
		}
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 old"}, edgeCLB + "+": {"tcp:80 young"}})
}

// TestOutsideOfItsGroupTakesItsOwnCLBAlong: a Service that stays on a CLB of its own, because another one has its port in the group, is
// deleted while nobody uses the CLB of the group. Its own one goes.
func TestOutsideOfItsGroupTakesItsOwnCLBAlong(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("shop", "edge", 80), born(testService("web", 80), 1))
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
			w.passes("web", 3)
			w.makeCLB(alicloud.Tag{Key: mark.TagGroup, Value: "c1/default/edge"})
			then(w)
			w.change("web", deleteService)
			w.passes("web", 4)
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 shop"}, "mine": {}})
		})
	}
}

// TestRenamedCLBIsLeft: a Service with a CLB whose name somebody has changed, and whose label somebody has removed, joins a group after a
// restart. Its Record says which CLB it leaves.
func TestRenamedCLBIsLeft(t *testing.T) {
	t.Parallel()
	web := born(testService("web", 80), 1)
	annotate(web, annotation.Name, "prod")
	w := groupWorld(t, grouped("shop", "edge", 81), web)
	w.restart()
	w.change("web", func(svc *corev1.Service) {
		delete(svc.Labels, driver.LabelLoadBalancerID)
		delete(svc.Annotations, key(annotation.Name))
		annotate(svc, annotation.Group, "edge")
	})
	w.passes("web", 8)
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
}
