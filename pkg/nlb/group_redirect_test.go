package nlb

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestRedirectedMoveGoesBack: a Service that has begun to move into a group, and shows its old place, is to be in a group where its port is
// taken, also with another process, which may begin after any write. It keeps the place that it shows, and what was begun goes.
func TestRedirectedMoveGoesBack(t *testing.T) {
	t.Parallel()
	for died := range 6 { // 0: no process does
		t.Run(fmt.Sprintf("%d writes", died), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("old", "third", 1, testkit.TCP(80)), grouped("web", "other", 2, testkit.TCP(80)))
				shown := w.hostname("web")
				w.change("web", with(annotation.Group, "edge"))
				if died > 0 {
					w.transport.diesAfter(died)
				}
				for pass := 0; pass < max(died, 1) && !w.transport.isDead(); pass++ {
					w.fillServices()
					_, _ = w.Reconcile(t.Context(), w.get("web"))
					time.Sleep(3 * settle)
				}
				if died > 0 {
					w.restart()
				}
				w.change("web", with(annotation.Group, "third"))
				w.tries(20, "web", "old")
				owners := w.ownersOf()
				if now := w.hostname("web"); now != shown || !w.answers("web", now) {
					t.Errorf("the status shows %s, want %s, which serves; %v", now, shown, owners)
				}
				if owners, begun := owners[edgeNLB]; begun {
					t.Errorf("the NLB where the move began stays: %v", owners)
				}
			})
		})
	}
}

// TestRedirectToRefusedOwnNLBStays: a Service that has begun to move into a group, and shows its old place, is to have an NLB of its own,
// which the cloud refuses or an annotation. It keeps the place that it shows, which follows the nodes, and what was begun goes.
func TestRedirectToRefusedOwnNLBStays(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, from := range []string{"a group", "an existing NLB"} {
		for _, why := range []string{"quota", "invalid"} {
			for when, then := range knownOrNot() {
				t.Run(fmt.Sprintf("from %s, %s, %s", from, why, when), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						web := grouped("web", "other", 2, testkit.TCP(80))
						if from != "a group" {
							web = newService("web", testkit.TCP(80), born(2), with(annotation.LoadBalancerID, w.existing("mine")),
								with(annotation.ForceOverrideListeners, "true"))
						}
						w.groupWorld(grouped("old", "third", 1, testkit.TCP(80)), web)
						shown := w.hostname("web")
						w.account.Fault(`{"times":0,"action":"CreateListener","code":"OperationDenied.Test","status":400}`)
						w.change("web", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners), with(annotation.Group, "edge"))
						w.tries(3, "web")
						then(w)
						w.account.ClearFaults()
						w.change("web", without(annotation.Group))
						if why == "quota" {
							w.account.Fault(`{"product":"nlb","action":"CreateLoadBalancer","times":0,"code":"QuotaExceeded.LoadBalancersNum","status":400}`)
						} else {
							w.change("web", with(annotation.AddressType, "bogus"))
						}
						w.tries(20, "web")
						w.replaceNodes()
						w.tries(10, "web")
						owners := w.ownersOf()
						if now := w.hostname("web"); now != shown {
							t.Errorf("the status shows %s, want %s; %v", now, shown, owners)
						}
						w.wantLeads(shown, "80")
						if owners, begun := owners[edgeNLB]; begun {
							t.Errorf("the NLB where the move began stays: %v", owners)
						}
					})
				})
			}
		}
	}
}
