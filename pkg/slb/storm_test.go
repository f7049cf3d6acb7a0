package slb

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// stormNodes is how many nodes join or leave at once: as 500 of 5,000.
const stormNodes = scaleNodes / 10

// fewRefusals is how many calls may be refused after another process took over: a Service that has lost nodes does not wait until it is
// known which ones the others have.
const fewRefusals = 25

// How the backend servers of a vServer group change.
const (
	addServers     = "AddVServerGroupBackendServers"
	removeServers  = "RemoveVServerGroupBackendServers"
	replaceServers = "ModifyVServerGroupBackendServers"
)

// storm is a fleet to which much happens at once.
type storm struct {
	*scaleTest
	*teststorm.Storm
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	return newStormOf(t, scaled)
}

func newStormOf(t *testing.T, size scaleSize) *storm {
	t.Helper()
	s := &storm{scaleTest: newScaleTestOf(t, backend.SubsetAuto, size)}
	s.begin()
	return s
}

// begin has what follows measured.
func (s *storm) begin() {
	s.t.Helper()
	s.Storm = teststorm.Begin(s.t, s.emulator, teststorm.Product{
		Add: addServers, Remove: removeServers, Replace: replaceServers, Group: "VServerGroupId", Leaving: "OldBackendServers", Quota: groupQuota,
	})
}

// replaceProcess is that of the fleet, with its time.
func (s *storm) replaceProcess() {
	s.t.Helper()
	s.fleet.replaceProcess()
	s.Replaced()
	s.Refusals = fewRefusals
}

// over waits until nothing is written any more, and checks what must hold then. It returns the calls that changed backend servers.
func (s *storm) over() []emulator.Call {
	s.t.Helper()
	calls := s.quiet()
	s.balanced(s.size.backends)
	return calls
}

// quiet waits until nothing is written any more, and checks that no node that is gone is a backend server. It returns the calls that
// changed backend servers.
func (s *storm) quiet() []emulator.Call {
	s.t.Helper()
	calls := s.Over()
	s.NoneGone(s.holders())
	return calls
}
