package slb

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// TestScaleOfGroups: with far more Services than CLBs, every Service is served by one CLB more at most than their listeners need, no CLB or
// node has more than its quota, the nodes are in about as many vServer groups each, and once all are served, nothing is refused or written
// any more, also after a restart.
func TestScaleOfGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quotas := quota.NewBook(map[string]int{
			string(quota.ListenersPerCLB): listenersPerCLB, string(quota.BackendsPerCLB): membersOfCLB,
			string(quota.CLBsPerInstance): scaleAttachments,
		})
		s := newScaleTestIn(t,
			cloud.Limits{LoadBalancers: leastSharedCLBs + 1, ListenersPerLB: listenersPerCLB, BackendsPerLB: membersOfCLB,
				LBsPerInstance: scaleAttachments},
			config.Config{BackendSubset: backend.SubsetAuto, Quotas: quotas},
			scaleSize{sharingNodes, sharingServices, membersOfCLB, scaleAttachments})
		defer func() { s.stop() }()
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

// Services that come at once, on two CLBs with the published quotas.
const servicesAtOnce, listenersAtOnce, membersAtOnce = 90, 50, 200

// TestGroupAtOnce: a manager finds many Services of a group that have no CLB yet. The first ones leave room for the others from the start:
// nothing is refused, no backend server leaves again, and all are served in the time that the quota of their writes takes.
func TestGroupAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{}, config.Config{BackendSubset: backend.SubsetAuto})
		defer func() { f.stop() }()
		for i := range sharingNodes {
			f.createFleetNode(nodeName(i))
		}
		f.stop()
		for i := range servicesAtOnce {
			f.put(born(overflowing(grouped(nameOfSharing(i), "edge", int32(1000+i))), int64(i)))
		}
		f.start()
		began := time.Now()
		f.rest()
		last := time.Time{}
		for _, call := range f.emulator.NewCalls() {
			if call.Code != "" || call.Action == removeServers {
				t.Errorf("%s %s: %s", call.Action, call.Parameters["VServerGroupId"], cmp.Or(call.Code, "removes backend servers of a new Service"))
			}
			if call.Action == "StartLoadBalancerListener" {
				last = call.Time
			}
		}
		took, least := last.Sub(began), servicesAtOnce*time.Minute/groupQuota
		t.Logf("%d Services are served after %s, which their writes take at least: %s", servicesAtOnce, took, least)
		if float64(took) > 1.1*float64(least) {
			t.Errorf("%d Services are served after %s, more than 1.1 times the %s that their writes take", servicesAtOnce, took, least)
		}
		clbs := f.state()
		if most := (servicesAtOnce + listenersAtOnce - 1) / listenersAtOnce; len(clbs) != most {
			t.Errorf("%d CLBs, want %d", len(clbs), most)
		}
		for name, lb := range clbs {
			for group, servers := range lb.Groups {
				if len(servers) < membersAtOnce/listenersAtOnce {
					t.Errorf("%s of %s has %d members", group, name, len(servers))
				}
			}
		}
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
	s.Even(s.holders(), s.size.attachments)
	for i := range sharingServices {
		if s.address(nameOfSharing(i)) == "" {
			s.t.Errorf("%s has no address", nameOfSharing(i))
		}
	}
}
