package slb

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// story is a random sequence of events over one Service, told from a seed.
type story struct {
	*world
	random *rand.Rand
	nodes  map[string]*corev1.Node
}

// one makes one event: a node comes, goes or changes, the Service changes, or a call of the cloud goes wrong.
func (h *story) one() {
	name := string(rune('a' + h.random.IntN(6)))
	switch h.random.IntN(8) {
	case 0, 1:
		h.nodes[name] = h.addNode(name)
	case 2:
		h.deleteNode(name)
		delete(h.nodes, name)
	case 3:
		if h.nodes[name] != nil {
			h.nodes[name] = testNode(name, notReady)
			h.putNode(h.nodes[name])
		}
	case 4:
		h.change("web", h.ports)
	case 5:
		h.change("web", func(svc *corev1.Service) {
			annotate(svc, HealthyThreshold, strconv.Itoa(2+h.random.IntN(9)))
			annotate(svc, DefaultWeight, strconv.Itoa(h.random.IntN(101)))
		})
	case 6:
		h.restart()
	case 7:
		kinds := []map[string]any{{"code": "InternalError", "status": 500}, {"drop": "before"}, {"drop": "after"}, {"code": "SystemBusy"}}
		rule := map[string]any{"action": "*", "after": h.random.IntN(3)}
		for key, value := range kinds[h.random.IntN(len(kinds))] {
			rule[key] = value
		}
		h.fault(rule)
	}
}

// ports gives the Service some of four ports.
func (h *story) ports(svc *corev1.Service) {
	svc.Spec.Ports = nil
	for port := range int32(4) {
		if h.random.IntN(2) == 0 || port == 0 {
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(80+port, corev1.ProtocolTCP))
		}
	}
}

// TestAnyOrderOfEventsEndsInTheSameState: whatever happened before, the end is what a program that sees only the end
// makes of it, and nothing is written after that.
func TestAnyOrderOfEventsEndsInTheSameState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			h := &story{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]*corev1.Node{}}
			h.nodes["z"] = h.addNode("z") // one node is always ready: without any, the members stay as they were
			h.put(testService("web", 80))
			for range 30 {
				h.one()
				if h.random.IntN(2) == 0 {
					_ = h.pass("web") // a fault may hit it; the end is what counts
				}
			}
			h.clearFaults()
			h.drift("web")
			h.converge("web")

			fresh := newWorld(t)
			for name, node := range h.nodes {
				fresh.addNode(name)
				fresh.putNode(node)
			}
			svc := h.get("web")
			fresh.put(&corev1.Service{ObjectMeta: testService("web").ObjectMeta, Spec: svc.Spec})
			fresh.change("web", func(s *corev1.Service) { s.Annotations = svc.Annotations })
			fresh.converge("web")
			if diff := cmp.Diff(fresh.state(), h.state(), cmp.Transformer("sorted", sortedMembers)); diff != "" {
				t.Errorf("state (-fresh +history):\n%s", diff)
			}
			h.calls()
			h.drift("web")
			h.mustPass("web")
			if writes := writesOf(h.calls()); len(writes) != 0 {
				t.Errorf("the last pass writes %v", writes)
			}
		})
	}
}

// sortedMembers makes lists of members comparable: their order tells in which order they came.
func sortedMembers(members []string) map[string]int {
	counts := map[string]int{}
	for _, member := range members {
		counts[member]++
	}
	return counts
}
