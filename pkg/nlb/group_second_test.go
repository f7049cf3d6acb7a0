package nlb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestSecondServiceOfAGroupIsServedSoon: a Service with several ports has the NLB of a group to itself, and all servers of it. Another one comes, and is
// served without waiting for the pass for drift over the first one.
func TestSecondServiceOfAGroupIsServedSoon(t *testing.T) {
	t.Parallel()
	for _, ports := range [][]int32{{80, 81}, {80, 81, 82}, {80, 81, 82, 83, 84}} {
		synctest.Test(t, func(t *testing.T) {
			const listeners, servers = 10, 40
			cfg := cloud.DefaultConfig()
			cfg.Quotas = cloud.Limits{ListenersPerNLB: listeners, ServersPerNLB: servers, NLBGroupsPerServer: 100}
			b := &border{live: map[string]int{}, joined: map[string]bool{}, storm: newStormOn(t, emulator.Options{Config: cfg, Settle: settle}, quota.NewBook(map[string]int{
				string(quota.ListenersPerNLB): listeners, string(quota.ServersPerNLB): servers, string(quota.GroupsPerServer): 100,
			}))}
			b.joinUpTo(30)
			b.put(grouped("big", "edge", 1, testkit.TCP(ports...)))
			b.rest()
			t.Log("before", b.members())
			b.put(grouped("small", "edge", 2, testkit.TCP(1000)))
			began := time.Now()
			for b.members()["small"] < 1 && time.Since(began) < time.Hour {
				time.Sleep(5 * time.Second)
				synctest.Wait()
			}
			t.Logf("%d ports: members %v after %s, %s", len(ports), b.members(), time.Since(began), b.hostname("small"))
			if took := time.Since(began); took > 3*time.Minute {
				t.Errorf("%d ports: the second Service is not served after %s", len(ports), took)
			}
			b.rest()
			t.Log("after", b.members())
		})
	}
}
