package nlb

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// refusedIDs are existing NLBs that a Service of a group may not use, if the policy allows only those with a tag, by the text of the
// Warning.
func refusedIDs() map[string]func(*world) string {
	return map[string]func(*world) string{
		"NLB nlb-typo may not be used, or does not exist": func(*world) string { return "nlb-typo" },
		"loadBalancerReuse is tagged":                     func(w *world) string { return w.existing("mine") },
		"was created by a controller": func(w *world) string {
			id := w.existing("mine")
			w.allow(id, testCluster)
			testkit.Check(w.t,
				w.account.Client.TagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{id},
					[]alicloud.Tag{{Key: mark.TagOwner, Value: "another"}}))
			return id
		},
	}
}

// names makes the Service web name an existing NLB, and keep the annotation of its group or not.
func (w *world) names(id string, keepsGroup bool) {
	w.t.Helper()
	changes := []func(*corev1.Service){with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true")}
	if !keepsGroup {
		changes = append(changes, without(annotation.Group))
	}
	w.change("web", changes...)
}

// refusedWorld makes a world with the Services web and shop in a group, in which Services may use existing NLBs only with a tag.
func (w *world) refusedWorld() {
	w.t.Helper()
	w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
	w.restart()
	w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(81)), grouped("web", "edge", 1, testkit.TCP(80)))
}

// TestRefusedIDKeepsServiceInItsGroup: a Service of a group that names an existing NLB which it may not use stays on that of its group,
// which follows nodes. One Warning says why, also after a restart, and few calls are made.
func TestRefusedIDKeepsServiceInItsGroup(t *testing.T) {
	t.Parallel()
	for text, refused := range refusedIDs() {
		for _, keepsGroup := range []bool{false, true} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, keeps the group %v, restarted %v", text, keepsGroup, restarted), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						w.refusedWorld()
						id, before := refused(w), w.hostname("web")
						stays := moveToNewNLB{owners: w.ownersOf()}
						w.names(id, keepsGroup)
						if restarted {
							w.restart()
						}
						w.newEvents()
						w.live("web", time.Minute)
						if condition := w.synced("web"); !strings.Contains(condition.Message, text) {
							t.Errorf("condition %+v, want %q", condition, text)
						}
						w.saysRefused(t, 1)
						w.staysOn(stays, before)

						w.calls()
						w.live("web", 32*time.Minute)
						if calls := w.calls(); len(calls) > 32*6 || len(writes(calls)) > 0 {
							t.Errorf("32 minutes take %d calls: %v", len(calls), calls)
						}
						w.saysRefused(t, 0)
						w.staysOn(stays, before)
						w.delete("shop")
						w.live("web", time.Minute)
						if !w.answers("web", before) {
							t.Error("the NLB went with another Service of the group")
						}
						w.delete("web")
						if left := w.ownersOf(); len(left[edgeNLB]) > 0 {
							t.Errorf("%v stay", left)
						}
					})
				})
			}
		}
	}
}

// TestRefusedIDIsCorrected: a Service that stays in its group because of the existing NLB that it names is an ordinary one of the group
// once the annotation is gone, and moves once it may use the NLB.
func TestRefusedIDIsCorrected(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		t.Run(map[bool]string{false: "removed", true: "allowed"}[allowed], func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.refusedWorld()
				id := w.existing("mine")
				w.names(id, true)
				w.live("web", time.Minute)
				want := map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}, "mine": {}}
				w.wantOwners(want)
				if allowed {
					w.allow(id, testCluster)
					want = map[string][]string{edgeNLB: {"tcp:81 shop"}, "mine": {"tcp:80 web"}}
				} else {
					w.change("web", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners))
				}
				w.live("web", groups.MovePause.Longest+4*time.Minute)
				w.wantOwners(want)
				if condition := w.synced("web"); condition.Status != metav1.ConditionTrue {
					t.Errorf("condition %+v", condition)
				}
				w.silent("web", "shop")
			})
		})
	}
}
