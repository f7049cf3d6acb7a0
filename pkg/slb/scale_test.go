package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// The scale of 5,000 nodes and 2,000 Services under published quotas, with everything that counts in the same proportion.
const (
	scaleNodes, scaleServices       = 300, 120
	scaleBackends, scaleAttachments = 20, 10
	// scaleEvents is how many nodes leave, and join, one after the other.
	scaleEvents = 6
)

// scaleSize is how large a fleet is, and how many backend servers a CLB, and how many CLBs an instance may have.
type scaleSize struct{ nodes, services, backends, attachments int }

var scaled = scaleSize{scaleNodes, scaleServices, scaleBackends, scaleAttachments}

// scaleTest is a fleet larger than its quotas.
type scaleTest struct {
	*fleet
	*teststorm.Nodes

	size scaleSize
}

func nodeName(i int) string { return teststorm.NodeName(i) }

// newScaleTestIn makes a fleet in a cloud with quotas, whose manager has settings, and its nodes.
func newScaleTestIn(t *testing.T, quotas cloud.Limits, settings config.Config, size scaleSize) *scaleTest {
	t.Helper()
	f := newFleetIn(t, quotas, settings)
	s := &scaleTest{f, teststorm.NewNodes(t, f.emulator, f.kube), size}
	s.JoinApart(size.nodes)
	return s
}

func newScaleTest(t *testing.T, subset backend.Subset) *scaleTest {
	t.Helper()
	return newScaleTestOf(t, subset, scaled)
}

func newScaleTestOf(t *testing.T, subset backend.Subset, size scaleSize) *scaleTest {
	t.Helper()
	s := newScaleTestIn(t,
		cloud.Limits{LoadBalancers: 10_000, BackendsPerLB: size.backends, LBsPerInstance: size.attachments},
		config.Config{BackendSubset: subset, Quotas: smallQuotas(size.backends, size.attachments)}, size)
	for i := range size.services {
		s.put(testService(fmt.Sprintf("s%03d", i), 80))
		synctest.Wait() // the fake API server's watches hold no more than a hundred events
	}
	s.rest()
	return s
}

// holders returns the instances behind each CLB.
func (f *fleet) holders() map[string][]string {
	f.t.Helper()
	behind := map[string][]string{}
	for name, lb := range f.state() {
		for _, servers := range lb.Groups {
			for _, server := range servers {
				id, _, _ := strings.Cut(strings.Fields(server)[1], ":")
				behind[name] = append(behind[name], id)
			}
		}
	}
	return behind
}

// written counts the writes since the last time. None may be refused.
func (s *scaleTest) written() int {
	s.t.Helper()
	calls := s.calls()
	if found := refused(calls); len(found) > 0 {
		s.t.Errorf("%d calls were refused, %v for example", len(found), found[0])
	}
	return len(emulatortest.Writes(calls))
}

// balanced checks what must hold of all Services.
func (s *scaleTest) balanced(most int) {
	s.t.Helper()
	behind := s.holders()
	if len(behind) != s.size.services {
		s.t.Errorf("%d Services have backends, want %d", len(behind), s.size.services)
	}
	s.Balanced(behind, most, s.size.attachments)
}

// events has nodes leave and join, and returns the writes.
func (s *scaleTest) events() (left, joined int) {
	s.t.Helper()
	s.written()
	for i := range scaleEvents {
		s.Delete(i * 7)
		s.rest()
		left += s.written()
		s.JoinApart(1)
		s.rest()
		joined += s.written()
	}
	return left, joined
}

// TestScale: with far more nodes and Services than the quotas have room for, every Service is served and nothing is refused; a node event
// writes to the Services that have the node, and a restart to none.
func TestScale(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		subset backend.Subset
		most   int
	}{{backend.SubsetAuto, scaleBackends}, {3, 3}} {
		t.Run(test.subset.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScaleTest(t, test.subset)
				defer func() { s.stop() }()
				s.written()
				s.balanced(test.most)
				left, joined := s.events()
				t.Logf("%d nodes that left: %d writes; %d that joined: %d writes", scaleEvents, left, scaleEvents, joined)
				if decision := scaleEvents * scaleServices * test.most / scaleNodes; left > decision+scaleEvents || joined > decision+scaleEvents {
					t.Errorf("%d and %d writes for %d nodes that left and joined, want about %d at most", left, joined, scaleEvents, decision)
				}
				s.balanced(test.most)
				s.stop()
				s.start()
				s.rest()
				if writes := s.written(); writes > 0 {
					t.Errorf("a restart wrote %d times", writes)
				}
			})
		})
	}
}
