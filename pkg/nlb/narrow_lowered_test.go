package nlb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestNewPortAfterTheQuotaWasLowered: somebody lowers the quota of servers of an NLB that has more. The cloud takes no further listener on it, even with an empty group. The
// other ports give servers up at the first refusal, none of them all, and the new one is served.
func TestNewPortAfterTheQuotaWasLowered(t *testing.T) {
	t.Parallel()
	const nodes, ports = 3, 4
	for _, test := range []struct {
		lowered, least int
		center         bool // the Quota Center shows it
	}{{11, 2, false}, {10, 2, false}, {10, 2, true}, {6, 1, false}, {6, 1, true}, {5, 1, false}} {
		t.Run(fmt.Sprint(test.lowered, " shown ", test.center), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newNarrow(t, cloud.Limits{ServersPerNLB: nodes * ports}, nodes)
				b.put(newService("web", tcpPorts(ports)))
				b.rest()
				b.account.Change(func(s *emulator.Settings) { s.Quotas.ServersPerNLB = test.lowered })
				if test.center {
					b.config.Quotas.Read(map[quota.Code]quota.Reading{quota.ServersPerNLB: {Value: test.lowered}})
				}
				b.fits(b.keepsServing(nodes, 20*time.Minute), ports, nodes)
				b.change("web", tcpPorts(ports+1))
				b.fits(b.keepsServing(1, movesSoon), ports+1, test.least)
				b.account.NewCalls()
				b.fits(b.keepsServing(1, 40*time.Minute), ports+1, test.least)
				if writes := writes(b.calls()); len(writes) > 0 {
					t.Errorf("writes %v", writes)
				}
			})
		})
	}
}
