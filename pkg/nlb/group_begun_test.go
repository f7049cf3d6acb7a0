package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
)

// TestBegunNLBOfItsOwnIsLeft: a process ends in the middle of the creation of an NLB of the Service's own, or the answer to that is lost,
// and then the Service is put into a group. Nothing on the Service says that the NLB is there.
func TestBegunNLBOfItsOwnIsLeft(t *testing.T) {
	t.Parallel()
	for _, isNew := range []bool{false, true} {
		for died := range 4 {
			t.Run(fmt.Sprintf("new %v, %d writes", isNew, died), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("shop", "edge", 1, testkit.TCP(81)))
					if web := newService("web", testkit.TCP(80), born(2)); isNew {
						w.put(web)
					} else {
						with(annotation.Group, "edge")(web)
						w.groupWorld(web)
						w.change("web", without(annotation.Group))
					}
					if died > 0 {
						w.transport.diesAfter(died)
					} else {
						w.account.Fault(`{"action":"CreateLoadBalancer","drop":"after","times":1}`)
					}
					for pass := 0; pass < max(died, 1) && !w.transport.isDead(); pass++ {
						w.fillServices()
						_, _ = w.Reconcile(t.Context(), w.get("web"))
						time.Sleep(settle)
					}
					if died > 0 {
						w.restart()
					}
					w.change("web", with(annotation.Group, "edge"))
					w.tries(12, "web", "shop")
					w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
					w.silent("web", "shop")
					w.leavesNothing("web", "shop")
				})
			})
		}
	}
}

// TestNLBOfAGroupIsThereAfterARestart: a process ends before the cloud has created the NLB of the Service's own for which it leaves a
// group. What the next one creates replaces nothing that is gone, and until then the NLB of the group follows nodes.
func TestNLBOfAGroupIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	for why, refusal := range map[string]string{"failure": `"code":"InternalError","status":500`,
		"quota": `"code":"QuotaExceeded.LoadBalancersNum","status":400`} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("shop", "edge", 1, testkit.TCP(81)), grouped("web", "edge", 2, testkit.TCP(80)))
				w.account.Fault(`{"action":"CreateLoadBalancer",` + refusal + `,"times":100}`)
				w.change("web", without(annotation.Group))
				for range 3 {
					w.passes("web", time.Minute)
					w.restart()
				}
				w.addNodes("n3")
				w.deleteNode("n1")
				w.passes("web", time.Minute)
				if servers := w.serversOf("web"); !slices.Equal(servers, []string{"i-n2:30080=100", "i-n3:30080=100"}) {
					t.Errorf("backend servers %v after a node joined and another left", servers)
				}
				w.account.ClearFaults()
				w.later(groups.MovePause.Longest)
				w.tries(12, "web", "shop")
				if events := strings.Join(w.newEvents(), "\n"); strings.Contains(events, "no longer exists") {
					t.Errorf("the NLB of the group is there; events:\n%s", events)
				}
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:81 shop"}, "a0f5e8a1cweb": {"tcp:80 web"}})
				w.silent("web", "shop")
				w.leavesNothing("web", "shop")
			})
		})
	}
}
