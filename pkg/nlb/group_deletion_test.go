package nlb

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestDeletionAgainTakesNoNLBOfTheGroup: a Service with an NLB of its own is deleted, and the process ends at any write of that. It was in
// the group before, or asks for it and lacks its port there. The next process finds no NLB of the Service any more, and deletes none of the
// group in its place, also if nobody is on that.
func TestDeletionAgainTakesNoNLBOfTheGroup(t *testing.T) {
	t.Parallel()
	for _, wasIn := range []bool{false, true} {
		for _, preserves := range []bool{false, true} {
			for died := range 4 {
				t.Run(fmt.Sprintf("was in %v, preserves %v, %d writes", wasIn, preserves, died+1), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						port, before, then := int32(80), newService("web", testkit.TCP(80), born(1)), with(annotation.Group, "edge")
						if wasIn {
							port, before, then = 81, grouped("web", "edge", 1, testkit.TCP(81)), without(annotation.Group)
						}
						w.groupWorld(grouped("shop", "edge", 0, testkit.TCP(80)), before)
						w.change("web", then)
						w.tries(12, "web")
						unused, tags := w.existing("mine"), []alicloud.Tag{{Key: mark.TagGroup, Value: "c1/default/edge"}}
						testkit.Check(t, w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{unused}, tags))
						w.change("web", with(annotation.PreserveOnDelete, strconv.FormatBool(preserves)))
						w.remove("web")
						w.transport.diesAfter(died + 1)
						for n := 0; n < 6 && !w.transport.isDead(); n++ {
							w.fillServices()
							_, _ = w.Reconcile(t.Context(), w.get("web"))
							time.Sleep(10 * settle)
						}
						w.restart()
						w.tries(10, "web")
						want := map[string][]string{edgeNLB: {"tcp:80 shop"}, "mine": {}}
						if preserves {
							want[ownNLB] = []string{fmt.Sprintf("tcp:%d web", port)}
						}
						w.wantOwners(want)
						if lb := testkit.Must(w.account.Client.GetNLB(t.Context(), unused))(t); hasTag(&lb, mark.TagPreserved) {
							t.Error("the NLB on which nobody is counts as preserved")
						}
						if held := w.get("web").Finalizers; len(held) > 0 {
							t.Errorf("finalizers %v stay", held)
						}
					})
				})
			}
		}
	}
}
