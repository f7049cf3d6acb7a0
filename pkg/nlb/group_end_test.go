package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestOrphansOfNLBGroups: an NLB of a group without Services is listed, and what a Service has left on one that others use.
func TestOrphansOfNLBGroups(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)), grouped("shop", "edge", 2, testkube.TCP(81)),
			grouped("blog", "alone", 3, testkube.TCP(80)))
		if found := w.orphans(w.census()); len(found) > 0 {
			t.Errorf("orphans of Services that are there: %v", found)
		}
		w.vanish("shop")
		w.vanish("blog")
		var shown []string
		for _, orphan := range w.orphans(w.census()) {
			shown = append(shown, orphan.Kind+" "+orphan.Name+": "+strings.SplitN(orphan.Reason, " the tag", 2)[0])
		}
		slices.Sort(shown)
		want := []string{
			"listener k8s.81.TCP.shop.default.c1: Service default/shop does not exist",
			"load balancer k8s-group-default-alone: no Service is in load balancer group default/alone",
			"server group k8s.30080.TCP.blog.default.c1: no Service has the UID of",
			"server group k8s.30081.TCP.shop.default.c1: no Service has the UID of",
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("orphans (-want +got):\n%s", diff)
		}
	})
}

// TestGroupStaysAsExistingNLB: Services of a group that name its NLB, as the official CCM needs it, have what they had, and so when they
// come back.
func TestGroupStaysAsExistingNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(_ *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)), grouped("shop", "edge", 2, testkube.TCP(81)))
		both, id := map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}}, w.named(edgeNLB)
		w.change("web", with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"))
		for _, begin := range []func(){func() {}, w.restart} {
			begin()
			w.together("web", "shop")
			w.wantOwners(both)
		}
		w.delete("shop") // the last one of the group deletes no NLB that another Service names
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
		w.change("web", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners))
		w.together("web")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
		w.silent("web")
		w.leavesNothing("web")
	})
}

// TestNLBOfAGroupIsKept: the NLB stays while somebody else has listeners on it, or has removed the tag of the group. No command deletes it.
func TestNLBOfAGroupIsKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *world, string){
		"listener by hand": func(t *testing.T, w *world, id string) {
			t.Helper()
			group := w.groups("web")[0].ID
			listener := alicloud.NLBListener{LoadBalancerID: id, Port: 9000, Protocol: alicloud.NLBTCP}
			listener.ServerGroupID = &group
			_, _, err := w.account.Client.CreateNLBListener(t.Context(), listener, "by hand")
			testkit.Check(t, err)
			w.later(5 * settle)
		},
		"tag removed": func(t *testing.T, w *world, id string) {
			t.Helper()
			testkit.Check(t, w.account.Client.UntagNLB(t.Context(), "loadbalancer", []string{id}, []string{mark.TagGroup}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
				change(t, w, w.named(edgeNLB))
				w.remove("web")
				w.fillServices()
				if err := w.try("web"); err != nil {
					t.Log(err)
				}
				if _, there := w.ownersOf()[edgeNLB]; !there {
					t.Error("the NLB is deleted")
				}
				if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerKept) && name == "tag removed" {
					t.Errorf("events %s, want %s", events, problem.ReasonLoadBalancerKept)
				}
				w.vanish("web")
				for _, orphan := range w.orphans(w.census()) {
					if orphan.Kind == driver.OrphanLoadBalancer {
						t.Errorf("the NLB is an orphan: %v, deleted by %q", orphan, orphan.Delete)
					}
				}
			})
		})
	}
}

// TestRangesComeLater: a Service that is in a group and begins to restrict its clients keeps its place, and says that the ranges have no
// effect.
func TestRangesComeLater(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)), grouped("shop", "edge", 2, testkube.TCP(81)))
		w.change("shop", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} })
		w.together("shop", "web")
		mustReport(t, w.newEvents(), "loadBalancerSourceRanges have no effect on an NLB that Services share")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
		w.silent("web", "shop")
		w.change("shop", without(annotation.Group))
		w.together("shop", "web")
		if access := w.get("shop").Labels["service.k8s.alibaba/security-group-id"]; access == "" {
			t.Error("on an NLB of its own, the Service has no security group")
		}
		before := w.hostname("shop")
		w.change("shop", with(annotation.Group, "edge"))
		w.live("shop", 60e9)
		if now := w.hostname("shop"); now != before || w.synced("shop").Reason != problem.ReasonMoveRefused {
			t.Errorf("the Service that restricts its clients moved into the group: %s, %+v", now, w.synced("shop"))
		}
		w.change("shop", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil })
		w.together("shop", "web")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
		w.silent("web", "shop")
		w.leavesNothing("web", "shop")
	})
}

// TestNLBOfAGroupStaysForOthers: the last Service of a group goes while another one that names the NLB by its ID has a listener there. An
// event says that the NLB stays. The manager deletes no NLB that a Service names: it stays when that one goes, too.
func TestNLBOfAGroupStaysForOthers(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("moves %v, restarted %v", moves, restarted), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
					id := w.only(edgeNLB).ID
					w.groupWorld(newService("guest", testkube.TCP(81), born(2), with(annotation.LoadBalancerID, id),
						with(annotation.ForceOverrideListeners, "true")))
					if moves {
						w.change("web", without(annotation.Group))
						w.tries(12, "web")
					} else {
						w.remove("web")
						w.tries(2, "web")
					}
					if events := strings.Join(w.newEvents(), "\n"); strings.Count(events, problem.ReasonLoadBalancerKept) != 1 ||
						!strings.Contains(events, "it has listeners of others") {
						t.Errorf("events %s, want one %s that says why", events, problem.ReasonLoadBalancerKept)
					}
					if !moves {
						w.vanish("web")
					}
					if restarted {
						w.restart()
					}
					w.tries(2, "guest")
					if listeners := w.ownersOf()[edgeNLB]; !slices.Equal(listeners, []string{"tcp:81 guest"}) {
						t.Fatalf("the NLB of the group has the listeners %v", listeners)
					}
					w.delete("guest")
					if listeners, there := w.ownersOf()[edgeNLB]; !there || len(listeners) > 0 {
						t.Errorf("the NLB is there %v, with the listeners %v", there, listeners)
					}
				})
			})
		}
	}
}

// TestNextNLBOfAGroupGoesAfterItsGuest: a Service that names the next NLB of a group by its ID goes after those of the group that were on
// it. The others of the group delete the NLB in their next pass for drift: orphans lists none of a group that has Services.
func TestNextNLBOfAGroupGoesAfterItsGuest(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(_ *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)),
					grouped("shop", "edge", 2, testkube.TCP(80), with(annotation.GroupOverflow, "true")))
				next := w.get("shop").Labels[driver.LabelLoadBalancerID]
				w.groupWorld(newService("guest", testkube.TCP(81), born(3), with(annotation.LoadBalancerID, next),
					with(annotation.ForceOverrideListeners, "true")))
				w.delete("shop")
				later := func() {
					for range 4 {
						w.later(longest)
						w.tries(3, "web")
					}
				}
				later()
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}, edgeNLB + "+": {"tcp:81 guest"}})
				w.delete("guest")
				if restarted {
					w.restart()
				}
				later()
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
				w.leavesNothing("web")
			})
		})
	}
}

// TestGuestOfAGroupGetsItsOwnNLB: a Service that names the NLB of a group by its ID no longer does. It moves to an NLB of its own, and no
// event says that the other one is gone.
func TestGuestOfAGroupGetsItsOwnNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
		w.groupWorld(newService("guest", testkube.TCP(81), born(2), with(annotation.LoadBalancerID, w.only(edgeNLB).ID),
			with(annotation.ForceOverrideListeners, "true")))
		w.change("guest", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners))
		w.tries(12, "guest")
		if events := strings.Join(w.newEvents(), "\n"); strings.Contains(events, problem.ReasonLoadBalancerRecreated) {
			t.Errorf("events %s, and the NLB of the group is there", events)
		}
		if owners := w.ownersOf(); len(owners) != 2 || !slices.Equal(owners[edgeNLB], []string{"tcp:80 web"}) {
			t.Errorf("listeners %v", owners)
		}
		w.leavesNothing("guest", "web")
	})
}
