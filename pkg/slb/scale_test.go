package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// The scale of 5,000 nodes and 2,000 Services under published quotas, with everything that counts in the same proportion.
const (
	scaleNodes, scaleServices, scaleZones = 300, 120, 3
	scaleBackends, scaleAttachments       = 20, 10
	// scaleEvents is how many nodes leave, and join, one after the other.
	scaleEvents = 6
)

// scaleSize is how large a fleet is, and how many backend servers a CLB, and how many CLBs an instance may have.
type scaleSize struct{ nodes, services, backends, attachments int }

var scaled = scaleSize{scaleNodes, scaleServices, scaleBackends, scaleAttachments}

// scaleTest is a fleet larger than its quotas.
type scaleTest struct {
	*fleet
	size scaleSize
	// next is the number of the next node that joins, nodes how many there are.
	next, nodes int
}

func nodeName(i int) string { return fmt.Sprintf("n%04d", i) }

func newScaleTest(t *testing.T, subset backend.Subset) *scaleTest {
	t.Helper()
	return newScaleTestOf(t, subset, scaled)
}

func newScaleTestOf(t *testing.T, subset backend.Subset, size scaleSize) *scaleTest {
	t.Helper()
	s := &scaleTest{size: size, fleet: newFleetIn(t,
		cloud.Limits{LoadBalancers: 10_000, BackendsPerLB: size.backends, LBsPerInstance: size.attachments},
		config.Config{BackendSubset: subset, Quotas: smallQuotas(size.backends, size.attachments)})}
	for range size.nodes {
		s.join()
	}
	for i := range size.services {
		s.put(testService(fmt.Sprintf("s%03d", i), 80))
		synctest.Wait() // the fake API server's watches hold no more than a hundred events
	}
	s.rest()
	return s
}

func (s *scaleTest) join() {
	s.t.Helper()
	s.create()
	synctest.Wait()
}

// create makes a node, as join does, without any wait for what follows from it.
func (s *scaleTest) create() {
	s.t.Helper()
	name := nodeName(s.next)
	s.createFleetNode(name)
	s.change(name, func(node *corev1.Node) {
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%d", s.next%scaleZones)
	})
	s.next++
	s.nodes++
}

func (s *scaleTest) leave(i int) {
	s.t.Helper()
	testkit.Check(s.t, s.kube.CoreV1().Nodes().Delete(s.t.Context(), nodeName(i), metav1.DeleteOptions{}))
	s.nodes--
}

func (s *scaleTest) change(name string, change func(*corev1.Node)) {
	s.t.Helper()
	node := testkit.Must(s.kube.CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{}))(s.t)
	change(node)
	testkit.Must(s.kube.CoreV1().Nodes().Update(s.t.Context(), node, metav1.UpdateOptions{}))(s.t)
}

// holders returns the instances behind each CLB, and how many CLBs each instance is behind.
func (s *scaleTest) holders() (map[string][]string, map[string]int) {
	s.t.Helper()
	behind, loads := map[string][]string{}, map[string]int{}
	for name, lb := range s.state() {
		for _, servers := range lb.Groups {
			for _, server := range servers {
				id, _, _ := strings.Cut(strings.Fields(server)[1], ":")
				behind[name] = append(behind[name], id)
				loads[id]++
			}
		}
	}
	return behind, loads
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
	behind, loads := s.holders()
	if len(behind) != s.size.services {
		s.t.Errorf("%d Services have backends, want %d", len(behind), s.size.services)
	}
	for name, ids := range behind {
		if len(ids) > most {
			s.t.Errorf("%s has %d backends, want %d at most", name, len(ids), most)
		}
	}
	s.even(loads)
}

// even checks that no node is in many more vServer groups than the nodes are on average, nor behind more CLBs than it may be.
func (s *scaleTest) even(loads map[string]int) {
	s.t.Helper()
	total := 0
	for _, n := range loads {
		total += n
	}
	mean := float64(total) / float64(s.nodes)
	for id, n := range loads {
		if n > s.size.attachments || float64(n) > max(1.3*mean, mean+1) {
			s.t.Errorf("%s is in %d vServer groups, the mean is %.1f and the quota of CLBs %d", id, n, mean, s.size.attachments)
		}
	}
}

// events has nodes leave and join, and returns the writes.
func (s *scaleTest) events() (left, joined int) {
	s.t.Helper()
	s.written()
	for i := range scaleEvents {
		s.leave(i * 7)
		s.rest()
		left += s.written()
		s.join()
		s.rest()
		joined += s.written()
	}
	return left, joined
}

// TestScale: with far more nodes and Services than the quotas have room for, every Service is served and nothing is refused; a node event writes to the
// Services that have the node, and a restart to none.
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
				if goal := scaleEvents * scaleServices * test.most / scaleNodes; left > goal+scaleEvents || joined > goal+scaleEvents {
					t.Errorf("%d and %d writes for %d nodes that left and joined, want about %d at most", left, joined, scaleEvents, goal)
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
