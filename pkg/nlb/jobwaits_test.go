package nlb

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestEndedWaitOfNobody: a Service waits for the creation of a load balancer and forgets about it. What came of that is no answer to the
// next wait, which is for its deletion.
func TestEndedWaitOfNobody(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id, svc := w.existing("first"), types.NamespacedName{Namespace: "default", Name: "web"}
		waits := &w.engine.awaits
		waits.loadBalancer(id, svc, func(lb *alicloud.NLB) bool { return lb != nil })
		w.later(2 * latePoll)
		waits.loadBalancer(id, svc, func(lb *alicloud.NLB) bool { return lb == nil })
		w.later(2 * latePoll)
		if found, ok := waits.outcomeOf(id); !ok || found.ended {
			t.Errorf("it is there, and counts as gone: %+v", found)
		}
		waits.awaitJob("job-none", svc)
		w.later(2 * forgottenAfter)
		waits.loadBalancer("nlb-none", svc, func(lb *alicloud.NLB) bool { return lb == nil })
		w.later(2 * latePoll)
		synctest.Wait()
		if _, ok := waits.outcomeOf("job-none"); ok {
			t.Error("what nobody can wait for any more takes memory")
		}
		waits.dropItem(id)
		time.Sleep(time.Minute)
	})
}
