package slb

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// meanwhile has something done just before the first call of an action.
func (w *world) meanwhile(action string, do func()) *testkit.Meanwhile {
	w.fillGroups()
	w.transport.next = &testkit.Meanwhile{Next: w.emulator.Transport(), Action: action, Do: do}
	return w.transport.next.(*testkit.Meanwhile) //nolint:forcetypeassert // it is one
}

// TestGuestComesWhileTheLastOfAGroupGoes: while the last Service of a group deletes the CLB, another one comes that names it by its ID. Its
// status shows no CLB that goes.
func TestGuestComesWhileTheLastOfAGroupGoes(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"DescribeVServerGroups", "SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				w.putAll(grouped("web", "edge", 80))
				id, shown := w.onlyCLB(), ""
				w.change("web", deleteService)
				at := w.meanwhile(action, func() {
					w.put(born(reusing("guest", id, "true", 81), 5))
					w.lagging("guest", 2)
					shown = w.address("guest")
					w.fillGroups()
				})
				w.lagging("web", 3)
				if !at.End() {
					t.Fatalf("web makes no call of %s", action)
				}
				if shown != "" && !w.answers("guest", shown) {
					t.Errorf("the status showed %s, and CLBs are %v", shown, w.ownersOf())
				}
			})
		})
	}
}

// TestGuestOfAnotherClusterNamesAnotherCLB: the annotation of a Service that uses the CLB of a group in another cluster by its ID changes.
// The Service stays where it is, as on any existing CLB, follows its nodes, and leaves nothing there when it is deleted. The other cluster
// keeps what it has.
func TestGuestOfAnotherClusterNamesAnotherCLB(t *testing.T) {
	t.Parallel()
	for _, hostname := range []string{"", "web.example.com"} {
		for _, names := range []bool{false, true} {
			for when, then := range knownOrNot() {
				t.Run(fmt.Sprintf("hostname %q, names another one %v, %s", hostname, names, when), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					threeNodes(w)
					theirs := w.makeCLB(alicloud.Tag{Key: mark.TagGroup, Value: "c2/default/edge"}, alicloud.Tag{Key: mark.TagAllow, Value: testCluster})
					w.makeListener(theirs.ID, 81, "k8s/81/web/default/c2")
					web := reusing("web", theirs.ID, "true", 80)
					if hostname != "" {
						annotate(web, annotation.Hostname, hostname)
					}
					w.putAll(web)
					w.must(w.api.SetLoadBalancerName(t.Context(), theirs.ID, "theirs"))
					other := w.makeCLB()
					then(w)
					w.change("web", func(svc *corev1.Service) {
						if annotate(svc, annotation.LoadBalancerID, other.ID); !names {
							delete(svc.Annotations, annotation.LoadBalancerID.Key())
						}
					})
					w.passes("web", 4)
					w.replaceNodes()
					w.passes("web", 4)
					wantOwners(t, w, map[string][]string{"theirs": {"tcp:80 web", "tcp:81 web"}, "mine": {}})
					if leads := w.leadsFrom(theirs.Address)["tcp:80"]; !slices.Equal(leads, []string{"d", "e", "f"}) {
						t.Errorf("the listener leads to %v", leads)
					}
					w.change("web", deleteService)
					w.passes("web", 5)
					wantOwners(t, w, map[string][]string{"theirs": {"tcp:81 web"}, "mine": {}})
					if groups := w.state()["theirs"].Groups; len(groups) > 0 {
						t.Errorf("vServer groups stay: %v", groups)
					}
				})
			}
		}
	}
}
