package nlb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestServersBeyondAnUnknownQuota: an NLB takes fewer servers than the published quota allows, which the refusals of servers do not show:
// other quotas may be the cause. What it has serves, and the others are tried less and less often.
func TestServersBeyondAnUnknownQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes, hours, most = 10, 6, 100
		b := newBorderOn(t, cloud.Limits{ServersPerNLB: takes}, quota.NewBook(nil))
		b.joinUpTo(8)
		b.put(newService("web", testkube.TCP(80)))
		b.rest()
		b.joinUpTo(20)
		b.account.NewCalls()
		time.Sleep(hours * time.Hour)
		synctest.Wait()
		refused := 0
		for _, call := range b.account.NewCalls() {
			if call.Code != "" {
				refused++
			}
		}
		if members := b.members(); refused > most || members["web"] != takes {
			t.Errorf("%d calls refused in %d hours, want %d at most; backend servers: %v", refused, hours, most, members)
		}
	})
}
