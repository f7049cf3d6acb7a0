package nlb

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestBegunNLBOfItsOwnIsLeft: a process ends in the middle of the creation of an NLB of the Service's own, or the answer to that is lost, and then the Service is
// put into a group. Nothing on the Service says that the NLB is there.
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
