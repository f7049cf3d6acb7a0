package slb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestLaterZonesSoonEvenOut: the nodes of two zones come one after the other to a cluster with one zone, so that all Services choose the
// first ones for the sake of their zones. Minutes later, long before drift is detected, no node is a backend server far more often than the
// mean.
func TestLaterZonesSoonEvenOut(t *testing.T) {
	t.Parallel()
	const (
		zones, nodes, services, subset = 3, 30, 40, 12
		soon                           = 15 * time.Minute
		far                            = 1.5 // times the mean
	)
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LoadBalancers: 10_000}, config.Config{BackendSubset: subset})
		defer func() { f.stop() }()
		joined := teststorm.NewNodes(t, f.emulator, f.kube)
		joined.JoinZone(0, nodes)
		for i := range services {
			f.put(testService(fmt.Sprintf("s%03d", i), 80))
			synctest.Wait()
		}
		f.rest()
		for zone := 1; zone < zones; zone++ {
			joined.JoinZone(zone, nodes)
		}
		time.Sleep(soon)
		loads, total := map[string]int{}, 0
		for _, instances := range f.holders() {
			for _, id := range instances {
				loads[id]++
				total++
			}
		}
		mean := float64(total) / float64(joined.Count())
		for id, n := range loads {
			if float64(n) > max(far*mean, mean+1) {
				t.Errorf("%s is a backend server of %d CLBs, the mean is %.1f", id, n, mean)
			}
		}
	})
}
