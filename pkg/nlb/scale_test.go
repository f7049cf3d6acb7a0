package nlb

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// More server groups than the published limits let through writes in a minute: what concerns all of them takes several windows. Each has as
// many servers as there is room for on its NLB, and the quota of each instance lets all together have a third more.
const (
	scaleNodes, scaleServices, scalePorts = 150, 110, 2
	scaleGroups                           = scaleServices * scalePorts
	// scaleServers is how many servers each of the ports of an NLB may have, scaleTimes in how many groups a server may be.
	scaleServers, scaleTimes = 20, 40
	// stormNodes is how many nodes join or leave at once.
	stormNodes = scaleNodes / 10
)

// fewRefusals is how many calls may be refused after another process took over: a Service that has lost nodes does not wait until it is
// known which ones the others have, see [backend.Use].
const fewRefusals = 10

// manyStorm is a controller with many Services and nodes, to which much happens at once.
type manyStorm struct {
	*storm
	*teststorm.Nodes
	*teststorm.Storm
}

// newManyStorm makes many nodes and Services, and begins when all are served.
func newManyStorm(t *testing.T) *manyStorm {
	t.Helper()
	cfg := cloud.DefaultConfig()
	cfg.Quotas = cloud.Limits{NLBs: 10_000, ServersPerNLB: scalePorts * scaleServers, NLBGroupsPerServer: scaleTimes}
	s := &manyStorm{storm: newStormOn(t, emulator.Options{Config: cfg, Settle: settle, RateLimits: emulator.RateLimitsPublished},
		quota.NewBook(map[string]int{
			string(quota.ServersPerNLB): scalePorts * scaleServers, string(quota.GroupsPerServer): scaleTimes,
		}), 24*time.Hour)}
	s.Nodes = teststorm.NewNodes(t, s.account.Cloud, s.kube)
	s.JoinApart(scaleNodes)
	for i := range scaleServices {
		s.put(newService(fmt.Sprintf("s%03d", i), testkube.TCP(80, 81)))
		synctest.Wait()
	}
	s.rest()
	s.begin()
	return s
}

// begin has what follows measured.
func (s *manyStorm) begin() {
	s.t.Helper()
	s.Storm = teststorm.Begin(s.t, s.account.Cloud, teststorm.Product{
		Add: addServers, Remove: removeServers, Group: "ServerGroupId", Quota: addQuota,
	})
}

// replaceProcess has another process go on, which knows nothing of the one before it.
func (s *manyStorm) replaceProcess() {
	s.t.Helper()
	s.storm.replaceProcess()
	s.Replaced()
	s.Refusals = fewRefusals
}

// serversByGroup returns the instances in each server group that do not leave it.
func (s *storm) serversByGroup() map[string][]string {
	s.t.Helper()
	var state struct {
		ServerGroups []struct { //nolint:tagliatelle // the admin API
			ServerGroupId string                              //nolint:revive // wire name
			Servers       []struct{ ServerId, Status string } //nolint:revive // wire name
		}
	}
	s.account.Read("state", &state)
	members := map[string][]string{}
	for _, group := range state.ServerGroups {
		members[group.ServerGroupId] = nil
		for _, server := range group.Servers {
			if server.Status != alicloud.NLBServerRemoving {
				members[group.ServerGroupId] = append(members[group.ServerGroupId], server.ServerId)
			}
		}
	}
	return members
}

// driftRounds is how many times all load balancers are looked at for drift until the Services have balanced their servers.
const driftRounds = 3

// balances waits until the process has looked for drift on each load balancer and has written nothing. What servers other Services have
// changes after a Service has chosen its own: only then it finds that one of them serves many more Services than the mean, and gives it up
// for another one, which may let others do the same.
func (s *manyStorm) balances() {
	s.t.Helper()
	for range driftRounds {
		s.account.NewCalls()
		time.Sleep(s.resync * 6 / 5)
		s.rest()
		if !slices.ContainsFunc(s.account.NewCalls(), func(call emulator.Call) bool { return !isRead(call.Action) }) {
			return
		}
	}
	s.t.Errorf("servers change even after looking for drift %d times", driftRounds)
}

// over waits until nothing is written any more, not even by another process, and checks what must hold then with so many nodes that work.
// It returns the calls that changed servers.
func (s *manyStorm) over(nodes int) []emulator.Call {
	s.t.Helper()
	least := 6 * min(scaleServers, 9*scaleTimes*nodes/scaleGroups/10) / 10 // of its share, which the nodes that work allow
	calls := s.Over()
	s.balances()
	members := s.serversByGroup()
	if nodes == s.Count() {
		s.Balanced(members, scaleServers, scaleTimes)
	}
	if len(members) != scaleGroups {
		s.t.Errorf("%d server groups, want %d", len(members), scaleGroups)
	}
	for group, ids := range members {
		if len(ids) < least {
			s.t.Errorf("%s has %d servers, want %d at least", group, len(ids), least)
		}
	}
	s.writesNothing()
	return calls
}
