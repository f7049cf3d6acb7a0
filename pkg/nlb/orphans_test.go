package nlb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// orphans fails the test if something cannot be read.
func (w *world) orphans(query driver.OrphanQuery) []driver.Orphan {
	w.t.Helper()
	census, unread := w.Orphans(w.t.Context(), query)
	if len(unread) > 0 {
		w.t.Error(errors.Join(unread...))
	}
	return census.Orphans
}

// TestOrphansThatCannotBeRead: a key without some permissions lists the rest, and each action that it lacks is named once.
func TestOrphansThatCannotBeRead(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{"ListLoadBalancers": driver.OrphanLoadBalancer, "ListServerGroups": driver.OrphanServerGroup,
		"DescribeSecurityGroups": driver.OrphanSecurityGroup}
	for action := range kinds {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
				w.account.Fault(fmt.Sprintf(`{"action":%q,"code":"Forbidden.RAM","status":403,"times":0}`, action))
				found, unread := w.Orphans(t.Context(), driver.OrphanQuery{ClusterIDs: []string{"c0", "c2"}})
				var got []string
				for _, orphan := range found.Orphans {
					got = append(got, orphan.Kind)
				}
				var want []string
				for other, kind := range kinds {
					unknown := action == "ListLoadBalancers" && kind == driver.OrphanSecurityGroup // one of the NLBs may use it
					if other != action && !unknown {
						want = append(want, kind)
					}
				}
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" || len(unread) != 1 || !strings.Contains(unread[0].Error(), action) {
					t.Errorf("unread %v; orphans (-want +got):\n%s", unread, diff)
				}
			})
		})
	}
}

// TestOrphans: what no Service owns any more is listed, once for each thing; what another cluster made is not.
func TestOrphans(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ranges := func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }
		w.serve(1, testkube.TCP(80), ranges)
		w.put(newService("kept", testkube.TCP(80)))
		w.converge("kept")
		w.config.ClusterID = "c2"
		w.restart()
		w.put(newService("other", testkube.TCP(80)))
		w.converge("other")
		w.config.ClusterID = testCluster
		w.restart()
		w.calls()
		found := w.orphans(driver.OrphanQuery{Services: []*corev1.Service{w.get("kept")}})
		var got []string
		for _, orphan := range found {
			got = append(got, orphan.Kind+" "+orphan.Name)
			if want := "no Service has the UID of the tag kubernetes.do.not.delete=a0f5e8a1cweb"; orphan.Reason != want || orphan.ID == "" {
				t.Errorf("orphan %+v, want the reason %q", orphan, want)
			}
		}
		slices.Sort(got)
		want := []string{driver.OrphanLoadBalancer + " a0f5e8a1cweb", driver.OrphanSecurityGroup + " k8s-nlb-a0f5e8a1cweb",
			driver.OrphanServerGroup + " k8s.30080.TCP.web.default.c1"}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("orphans (-want +got):\n%s", diff)
		}
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
	})
}

// TestPreservedIsFound: a load balancer that stays because its Service asked for that is found with the flag, until a Service uses it.
func TestPreservedIsFound(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.PreserveOnDelete, "true"))
		id := w.balancer("web").ID
		w.remove("web")
		w.converge("web")
		found := func(query driver.OrphanQuery) []string {
			var ids []string
			for _, orphan := range w.orphans(query) {
				ids = append(ids, orphan.ID)
			}
			return ids
		}
		if diff := cmp.Diff([]string{id}, found(driver.OrphanQuery{Preserved: true})); diff != "" {
			t.Errorf("with the flag (-want +got):\n%s", diff)
		}
		if got := found(driver.OrphanQuery{}); got != nil {
			t.Errorf("without the flag: %q", got)
		}
		uses := newService("shop", testkube.TCP(80), with(annotation.LoadBalancerID, id))
		if got := found(driver.OrphanQuery{Preserved: true, Services: []*corev1.Service{uses}}); got != nil {
			t.Errorf("although a Service uses it: %q", got)
		}
	})
}

// TestOrphansAreDeleted: the commands that the report prints delete what it found, in the order of the report of the program. One that
// finds something in use while an NLB is being deleted works when that has gone.
func TestOrphansAreDeleted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
		if !w.balancer("web").DeletionProtection {
			t.Fatal("the NLB is not protected: nothing to take off")
		}
		found := w.orphans(driver.OrphanQuery{})
		kinds := []string{driver.OrphanLoadBalancer, driver.OrphanServerGroup, driver.OrphanSecurityGroup}
		slices.SortStableFunc(found, func(a, b driver.Orphan) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
		for i := range found {
			for _, command := range found[i].Delete {
				code := w.account.CLI(command)
				for range 60 {
					if code == "" || found[i].Kind == driver.OrphanLoadBalancer {
						break
					}
					w.later(settle)
					code = w.account.CLI(command)
				}
				if code != "" {
					t.Errorf("%s: %s", command, code)
				}
			}
		}
		w.later(time.Minute)
		if left := w.orphans(driver.OrphanQuery{}); len(found) != 3 || len(left) > 0 {
			t.Errorf("found %v; after the commands: %v", found, left)
		}
	})
}

// TestOrphansOfEarlierIDs: an NLB of a Service that exists shows which ID the cluster had before: what is left from then counts. The ID on
// that of another cluster does not.
func TestOrphansOfEarlierIDs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.ClusterID = "c0"
		w.restart()
		w.serve(1, testkube.TCP(80))
		w.put(newService("kept", testkube.TCP(80)))
		w.converge("kept")
		w.config.ClusterID = "c9"
		w.restart()
		w.put(newService("theirs", testkube.TCP(80)))
		w.converge("theirs")
		w.config.ClusterID = testCluster
		w.restart()
		if found := w.orphans(driver.OrphanQuery{}); len(found) > 0 {
			t.Errorf("without a Service of that time: %v", found)
		}
		census, unread := w.Orphans(t.Context(), driver.OrphanQuery{Services: []*corev1.Service{w.get("kept")}})
		for _, orphan := range census.Orphans {
			if orphan.ClusterID != "c0" || !strings.HasSuffix(orphan.Reason, "=a0f5e8a1cweb") {
				t.Errorf("orphan %+v, want only those of Service web", orphan)
			}
		}
		if diff := cmp.Diff([]string{"c0", testCluster}, census.ClusterIDs); diff != "" || len(census.Orphans) != 2 || len(unread) > 0 {
			t.Errorf("%d orphans, unread %v, cluster IDs (-want +got):\n%s", len(census.Orphans), unread, diff)
		}
	})
}

// TestOrphanOfAServiceThatLeft: somebody removed the finalizer of a Service and made it one of another type. Its NLB stays behind.
func TestOrphanOfAServiceThatLeft(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.Type, svc.Spec.LoadBalancerClass, svc.Finalizers = corev1.ServiceTypeClusterIP, nil, nil
		})
		found := w.orphans(driver.OrphanQuery{Services: []*corev1.Service{w.get("web")}})
		if len(found) != 2 || found[0].Reason != "Service default/web no longer wants a load balancer of this manager" {
			t.Errorf("orphans %v, want its NLB and its server group", found)
		}
	})
}

// TestGroupOfAPreservedNLBIsNoOrphan: the security group for the source ranges of a load balancer that stayed when its Service went still
// guards it.
func TestGroupOfAPreservedNLBIsNoOrphan(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.PreserveOnDelete, "true"), func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		})
		id := w.balancer("web").ID
		w.remove("web")
		w.converge("web")
		if found := w.orphans(driver.OrphanQuery{}); len(found) > 0 || !w.exists(id) {
			t.Errorf("orphans %v; the load balancer is there: %v", found, w.exists(id))
		}
		testkit.Must(w.account.Client.DeleteNLB(t.Context(), id))(t)
		w.later(30 * settle)
		if found := w.orphans(driver.OrphanQuery{}); len(found) != 1 || found[0].Kind != driver.OrphanSecurityGroup {
			t.Errorf("orphans %v, want the security group that nothing uses any more", found)
		}
	})
}
