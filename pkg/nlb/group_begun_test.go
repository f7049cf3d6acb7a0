package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
)

// TestNLBOfAGroupIsThereAfterARestart: a process ends before the cloud has created the NLB of the Service's own for which it leaves a
// group. What the next one creates replaces nothing that is gone, and until then the NLB of the group follows nodes.
func TestNLBOfAGroupIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	for why, refusal := range map[string]string{"failure": `"code":"InternalError","status":500`,
		"quota": `"code":"QuotaExceeded.LoadBalancersNum","status":400`} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("shop", "edge", 1, testkube.TCP(81)), grouped("web", "edge", 2, testkube.TCP(80)))
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
