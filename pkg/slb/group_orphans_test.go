package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestGroupOrphans: a CLB of a group without Services is listed, and what a Service has left on one that others use.
func TestGroupOrphans(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81), grouped("blog", "alone", 80))
	if found := w.orphans(); len(found) > 0 {
		t.Errorf("orphans of Services that are there: %v", found)
	}
	w.vanish("shop")
	w.vanish("blog")
	want := []string{
		"listener tcp:81 (k8s/81/shop/default/c1) in lb: Service default/shop does not exist",
		"load balancer lb (k8s-group-default-alone): no Service is in load balancer group default/alone",
		"vServer group rsp (k8s/30081/shop/default/c1) in lb: Service default/shop does not exist",
	}
	if diff := cmp.Diff(want, w.orphans()); diff != "" {
		t.Errorf("orphans (-want +got):\n%s", diff)
	}
}

// TestKeptCLBOfAGroupIsNoOrphan: no command deletes a CLB that the manager keeps because somebody else has a listener on it, only what is
// left of Services. Once that listener is gone, the CLB is an orphan. Where nobody can tell, it is none.
func TestKeptCLBOfAGroupIsNoOrphan(t *testing.T) {
	t.Parallel()
	for name, description := range map[string]string{"by hand": "by hand", "another cluster": "k8s/9000/shop/default/c2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
			id := w.onlyCLB()
			w.makeListener(id, 9000, description)
			w.vanish("shop")
			w.change("web", deleteService)
			for range 3 {
				w.mustPass("web")
			}
			w.vanish("web")
			left := []string{
				"listener tcp:81 (k8s/81/shop/default/c1) in lb: Service default/shop does not exist",
				"vServer group rsp (k8s/30081/shop/default/c1) in lb: Service default/shop does not exist",
			}
			if diff := cmp.Diff(left, w.orphans()); diff != "" {
				t.Errorf("orphans beside the listener of somebody else (-want +got):\n%s", diff)
			}
			w.deleteListener(id, 9000)
			want := []string{"load balancer lb (k8s-group-default-edge): no Service is in load balancer group default/edge"}
			if diff := cmp.Diff(want, w.orphans()); diff != "" {
				t.Errorf("orphans without the listener (-want +got):\n%s", diff)
			}
			w.fault(map[string]any{"action": "DescribeLoadBalancerListeners", "code": "Forbidden.RAM", "status": 403})
			if found, unread := w.Orphans(t.Context(), driver.OrphanQuery{}); len(found.Orphans) > 0 || len(unread) == 0 ||
				!alicloud.IsForbidden(unread[0]) {
				t.Errorf("orphans %v, unread %v; want only the error of the call", found.Orphans, unread)
			}
		})
	}
}

// TestPreservedInAGroupIsNoOrphan: what a Service leaves on purpose on the CLB of a group is found with the flag only, also when the last
// Service goes, and when somebody has used the CLB as an existing one.
func TestPreservedInAGroupIsNoOrphan(t *testing.T) {
	t.Parallel()
	for name, lastPreserves := range map[string]string{"the first": "false", "both": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web, shop := grouped("web", "edge", 80), grouped("shop", "edge", 81)
			annotate(web, annotation.PreserveOnDelete, "true")
			annotate(shop, annotation.PreserveOnDelete, lastPreserves)
			w := groupWorld(t, web, shop)
			id := w.onlyCLB()
			w.must(w.api.TagLoadBalancer(t.Context(), id, []alicloud.Tag{{Key: mark.TagReused, Value: "true"}}))
			for _, step := range []struct {
				deleted string
				want    []string
			}{
				{"web", []string{
					"listener tcp:80 (k8s/80/web/default/c1) in lb: Service default/web does not exist",
					"vServer group rsp (k8s/30080/web/default/c1) in lb: Service default/web does not exist",
				}},
				{"shop", []string{"load balancer lb (k8s-group-default-edge): no Service is in load balancer group default/edge"}},
			} {
				w.change(step.deleted, deleteService)
				for range 3 {
					w.mustPass(step.deleted)
				}
				w.vanish(step.deleted)
				if found := w.orphans(); found != nil {
					t.Errorf("without %s: what was preserved is an orphan: %q", step.deleted, found)
				}
				if diff := cmp.Diff(step.want, w.orphans(driver.OrphanQuery{Preserved: true})); diff != "" {
					t.Errorf("without %s, with the flag (-want +got):\n%s", step.deleted, diff)
				}
			}
			if value := tagsOf(w.lb(id))[mark.TagPreserved]; value != "c1/default/web" {
				t.Errorf("the CLB has the tag %s=%q", mark.TagPreserved, value)
			}
		})
	}
}

// TestReusedTagOnCLBOfAGroup: the CLB of a group has the tag that the official CCM sets on CLBs which it uses. What a Service has there is
// no orphan, also while nothing on the Service names the CLB yet, and what is left of one is listed once.
func TestReusedTagOnCLBOfAGroup(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"a new Service": {func(w *world) {
			w.put(born(grouped("blog", "edge", 82), 5))
			w.transport.limit = w.transport.writes + 2
			_ = w.pass("blog")
		}, nil},
		"a Service that moves in": {func(w *world) {
			w.put(born(testService("blog", 82), 5))
			w.mustPass("blog")
			w.change("blog", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
			w.transport.limit = w.transport.writes + 2
			_ = w.pass("blog")
		}, nil},
		"a Service is gone": {func(w *world) { w.vanish("shop") }, []string{
			"listener tcp:81 (k8s/81/shop/default/c1) in lb: Service default/shop does not exist",
			"vServer group rsp (k8s/30081/shop/default/c1) in lb: Service default/shop does not exist",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.must(w.api.TagLoadBalancer(t.Context(), w.onlyCLB(), []alicloud.Tag{{Key: mark.TagReused, Value: "true"}}))
			stage.change(w)
			w.restart()
			if diff := cmp.Diff(stage.want, w.orphans()); diff != "" {
				t.Errorf("orphans (-want +got):\n%s", diff)
			}
		})
	}
}
