package nlb

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestPreservedNLBOfAGroupIsOutOfIt: an NLB that the last Service of a group leaves because an annotation asks for that is its author's.
// The group has another one.
func TestPreservedNLBOfAGroupIsOutOfIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80), with(annotation.PreserveOnDelete, "true")))
				kept := w.only(edgeNLB)
				w.delete("web")
				lb := testkit.Must(w.account.Client.GetNLB(t.Context(), kept.ID))(t)
				if group, tagged := lb.Tag(mark.TagGroup); tagged {
					t.Errorf("the NLB that was left has still the tag of the group %s: %v", group, lb.Tags)
				}
				if found := w.orphans(w.census()); len(found) > 0 {
					t.Errorf("what was kept on purpose is an orphan: %v", found)
				}
				w.put(grouped(name, "edge", 2, testkube.TCP(80)))
				w.together(name)
				t.Log(w.ownersOf())
				w.delete(name)
				if _, err := w.account.Client.GetNLB(t.Context(), kept.ID); alicloud.IsNotFound(err) {
					t.Errorf("the NLB that was to stay is deleted with a later Service of the group")
				}
				t.Log(w.ownersOf())
			})
		})
	}
}

// TestPreservedInAnNLBGroupIsNoOrphan: what a Service leaves on purpose on the NLB of a group is found with the flag only, also when the
// last Service goes.
func TestPreservedInAnNLBGroupIsNoOrphan(t *testing.T) {
	t.Parallel()
	for name, lastPreserves := range map[string]string{"the first": "false", "both": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(
					grouped("web", "edge", 1, testkube.TCP(80), with(annotation.PreserveOnDelete, "true")),
					grouped("shop", "edge", 2, testkube.TCP(81), with(annotation.PreserveOnDelete, lastPreserves)),
				)
				for _, step := range []struct{ deleted, kind, reason string }{
					{"web", driver.OrphanListener, "Service default/web does not exist"},
					{"shop", driver.OrphanLoadBalancer, "no Service is in load balancer group default/edge"},
				} {
					w.delete(step.deleted)
					if found := w.orphans(w.census()); len(found) > 0 {
						t.Errorf("without %s: what was preserved is an orphan: %v", step.deleted, found)
					}
					query := w.census()
					query.Preserved = true
					if found := w.orphans(query); len(found) != 1 || found[0].Kind != step.kind || found[0].Reason != step.reason {
						t.Errorf("without %s, with the flag: %v, want only a %s: %s", step.deleted, found, step.kind, step.reason)
					}
				}
			})
		})
	}
}

// TestPreservedOnExistingNLBIsNoOrphan: what a Service leaves on purpose on an existing NLB is its author's.
func TestPreservedOnExistingNLBIsNoOrphan(t *testing.T) {
	t.Parallel()
	for _, force := range []string{"true", "false"} {
		t.Run("force "+force, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id := w.existing("mine")
				w.groupWorld(newService("web", testkube.TCP(80), with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, force),
					with(annotation.PreserveOnDelete, "true")))
				before := w.listeners(id)
				w.delete("web")
				for _, preserved := range []bool{false, true} {
					query := w.census()
					query.Preserved = preserved
					if found := w.orphans(query); len(found) > 0 {
						t.Errorf("with the flag %v: %v", preserved, found)
					}
				}
				if after := w.listeners(id); !slices.Equal(after, before) {
					t.Errorf("listeners %v, want %v", after, before)
				}
			})
		})
	}
}

// TestBackInAGroup: a Service that leaves a group, whose NLB goes, and comes back to it in another process gets a new NLB.
func TestBackInAGroup(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		for _, away := range []string{"other", ""} {
			t.Run(fmt.Sprint(away, restart), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
					if away == "" {
						w.change("web", without(annotation.Group))
					} else {
						w.change("web", with(annotation.Group, away))
					}
					w.live("web", 5*time.Minute)
					t.Log(w.ownersOf())
					if restart {
						w.restart()
					}
					w.change("web", with(annotation.Group, "edge"))
					w.live("web", 30*time.Minute)
					w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
					t.Log(w.calls())
				})
			})
		}
	}
}
