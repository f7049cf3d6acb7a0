package slb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// story is a random sequence of events over one Service, derived from a seed.
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
			setOrDelete(svc, annotation.HealthyThreshold, []string{"", "2", "5", "9"}[h.random.IntN(4)])
			annotate(svc, annotation.DefaultWeight, strconv.Itoa(h.random.IntN(101)))
			setOrDelete(svc, annotation.AdditionalTags, h.some("a=1", "b=1", "c=1"))
			setOrDelete(svc, annotation.DomainExtensions, h.some("a.example.com:cert-1", "b.example.com:cert-1", "c.example.com:cert-2"))
		})
	case 6:
		h.restart()
	case 7:
		kinds := []map[string]any{{"code": "InternalError", "status": 500}, {"drop": "before"}, {"drop": "after"}, {"code": "SystemBusy"}}
		rule := map[string]any{"action": "*", "after": h.random.IntN(3)}
		maps.Copy(rule, kinds[h.random.IntN(len(kinds))])
		h.fault(rule)
	}
}

// some joins some of the items, or none.
func (h *story) some(items ...string) string {
	return strings.Join(slices.DeleteFunc(items, func(string) bool { return h.random.IntN(2) == 0 }), ",")
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

// secureWeb makes the Service of a story: its first port is https. On an existing CLB, that has a tag of the user's own.
func (w *world) secureWeb(reused bool) *corev1.Service {
	w.t.Helper()
	svc := testService("web", 80)
	if reused {
		svc = reusing("web", w.makeCLB(alicloud.Tag{Key: "mine", Value: "1"}).ID, "true", 80)
	}
	annotate(svc, annotation.ProtocolPort, "https:80")
	annotate(svc, annotation.CertID, testCertificate)
	return svc
}

// TestAnyOrderOfEventsEndsInTheSameState: whatever happened before, the end is what a program that sees only the end
// makes of it, and nothing is written after that. What left the annotations is gone, on an existing CLB, too.
func TestAnyOrderOfEventsEndsInTheSameState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		if !testkit.Tried(int(seed), 4) {
			continue
		}
		for _, reused := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, reused %v", seed, reused), func(t *testing.T) {
				t.Parallel()
				h := &story{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]*corev1.Node{}}
				h.nodes["z"] = h.addNode("z") // one node is always ready: without any, the backend servers stay as they were
				h.put(h.secureWeb(reused))
				for range 30 {
					h.one()
					if h.random.IntN(2) == 0 {
						_ = h.pass("web") // a fault may hit it; the end is what counts
					}
				}
				h.clearFaults()
				h.drift("web")
				h.converge("web")
				if diff := cmp.Diff(h.fresh(reused), h.state(), cmp.Transformer("sorted", sortedBackends)); diff != "" {
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
}

// fresh is what a program makes of the end of the story that saw nothing else of it.
func (h *story) fresh(reused bool) map[string]cloudLB {
	h.t.Helper()
	fresh := newWorld(h.t)
	for name, node := range h.nodes {
		fresh.addNode(name)
		fresh.putNode(node)
	}
	svc, made := h.get("web"), fresh.secureWeb(reused)
	made.Spec = svc.Spec
	for key, value := range svc.Annotations {
		if key != annotation.Prefixes[0]+string(annotation.LoadBalancerID) {
			made.Annotations[key] = value
		}
	}
	fresh.put(made)
	fresh.converge("web")
	return fresh.state()
}

// sortedBackends makes lists of backend servers comparable: their order is the one in which they came.
func sortedBackends(servers []string) map[string]int {
	counts := map[string]int{}
	for _, server := range servers {
		counts[server]++
	}
	return counts
}
