package slb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestNoServiceIsStarvedByQuotaThatIsTooHigh: the quota that is read is larger than what the cloud grants, as where CLBs of somebody else
// have the same instances. The refusals show that for every instance. Each Service has at least one backend server all the same: others
// have several. Each instance is tried again after an hour.
func TestNoServiceIsStarvedByQuotaThatIsTooHigh(t *testing.T) {
	t.Parallel()
	const nodes, services, shown = 20, 33, 10
	for _, granted := range []int{8, 7, 6, 5, 3} {
		t.Run(fmt.Sprint(granted), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{LBsPerInstance: granted, LoadBalancers: 1000},
					config.Config{BackendSubset: backend.SubsetAuto, Quotas: assumedBook(shown)})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				f.putMany("s", services)
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				least, most := nodes, 0
				for i := range services {
					n := len(f.backendsOf(fmt.Sprintf("s%03d", i))["30080"])
					least, most = min(least, n), max(most, n)
					if n == 0 {
						t.Errorf("s%03d has no backend server", i)
					}
				}
				f.emulator.NewCalls()
				writes, refused := f.refusedIn(3 * time.Hour)
				if refused > nodes {
					t.Errorf("%d calls are refused in 3 hours", refused)
				}
				t.Logf("granted %d of %d: Services have %d to %d of %d nodes, %d refused calls of %d in 3 hours", granted, shown, least, most, nodes,
					refused, writes)
			})
		})
	}
}
