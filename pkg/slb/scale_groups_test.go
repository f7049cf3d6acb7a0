package slb

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// More Services than there are CLBs, whose quotas are a fifth of the published ones. All may share them.
const (
	sharingNodes, sharingServices = 50, 28
	listenersPerCLB, membersOfCLB = 10, 40
	leastSharedCLBs               = (sharingServices + listenersPerCLB - 1) / listenersPerCLB
)

// TestScaleOfGroups: with far more Services than CLBs, every Service is served by one CLB more at most than their listeners need, no CLB or node has more
// than its quota, and once all are served, nothing is refused or written any more, also after a restart.
func TestScaleOfGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quotas := quota.NewBook(map[string]int{
			string(quota.ListenersPerCLB): listenersPerCLB, string(quota.BackendsPerCLB): membersOfCLB, string(quota.CLBsPerInstance): scaleAttachments,
		})
		s := &scaleTest{fleet: newFleetIn(t,
			cloud.Limits{LoadBalancers: leastSharedCLBs + 1, ListenersPerLB: listenersPerCLB, BackendsPerLB: membersOfCLB, LBsPerInstance: scaleAttachments},
			config.Config{BackendSubset: backend.SubsetAuto, Quotas: quotas})}
		defer func() { s.stop() }()
		for range sharingNodes {
			s.join()
		}
		for i := range sharingServices {
			s.put(born(overflowing(grouped(nameOfSharing(i), "edge", int32(1000+i))), int64(i)))
			synctest.Wait() // the fake API server's watches hold no more than a hundred events
		}
		s.rest()
		s.sharedByAll()
		s.calls()
		s.stop()
		s.start()
		s.rest()
		if writes := s.written(); writes > 0 {
			t.Errorf("a restart wrote %d times", writes)
		}
		s.sharedByAll()
	})
}

func nameOfSharing(i int) string { return fmt.Sprintf("s%03d", i) }

// sharedByAll checks that all Services are served by the CLBs of their group.
func (s *scaleTest) sharedByAll() {
	s.t.Helper()
	clbs, listeners := s.state(), 0
	for name, lb := range clbs {
		listeners += len(lb.Listeners)
		members := 0
		for group, servers := range lb.Groups {
			if members += len(servers); len(servers) == 0 {
				s.t.Errorf("%s of %s has no members", group, name)
			}
		}
		s.t.Logf("%s: %d listeners, %d members of %d groups", name, len(lb.Listeners), members, len(lb.Groups))
	}
	if len(clbs) > leastSharedCLBs+1 || listeners != sharingServices {
		s.t.Errorf("%d listeners on %d CLBs, want %d on %d at most", listeners, len(clbs), sharingServices, leastSharedCLBs+1)
	}
	for i := range sharingServices {
		if s.address(nameOfSharing(i)) == "" {
			s.t.Errorf("%s has no address", nameOfSharing(i))
		}
	}
}
