package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestNodesBeyondTheQuotaOfAnNLB: of more nodes than an NLB takes, as many become servers as fit, and nothing is refused. One that leaves
// makes room for another one, which comes afterwards: an NLB has no call that replaces a server.
func TestNodesBeyondTheQuotaOfAnNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): 8})
		w.restart()
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprintf("n%d", i))
		}
		w.addNodes(names...)
		w.put(newService("web", testkit.TCP(80, 443)))
		w.converge("web")
		servers := func() []string {
			found := w.listeners(w.balancer("web").ID)
			var ids []string
			for _, field := range strings.Fields(found[0])[1:] {
				id, _, _ := strings.Cut(field, ":")
				ids = append(ids, id)
			}
			return ids
		}
		before := servers()
		if len(before) != 4 {
			t.Fatalf("servers %v, want 4 behind each of two ports", before)
		}
		w.quiet("web")
		w.addNodes("n7")
		w.quiet("web")
		w.deleteNode(strings.TrimPrefix(before[0], "i-"))
		w.converge("web")
		w.later(time.Minute)
		w.converge("web")
		if after := servers(); len(after) != 4 || slices.Contains(after, before[0]) {
			t.Errorf("servers %v after %s left", after, before[0])
		}
		for _, call := range w.calls() {
			if strings.Contains(call, "=") {
				t.Errorf("refused: %s", call)
			}
		}
		w.quiet("web")
		w.change("web", with(annotation.BackendSubset, "2"))
		w.converge("web")
		if after := servers(); len(after) != 2 {
			t.Errorf("servers %v, want 2", after)
		}
	}, func(cfg *cloud.Config) { cfg.Quotas.ServersPerNLB = 8 })
}

// TestAllServersOfAFullNLBLeave: all nodes behind an NLB that has as many servers as its quota lets it leave at once. Others take their
// place: the servers that are gone do not stay for want of room.
func TestAllServersOfAFullNLBLeave(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{6, 10} { // fewer and more than the NLB takes are left
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): 4})
				w.restart()
				for i := range nodes {
					w.addNodes(fmt.Sprintf("n%d", i))
				}
				w.put(newService("web", testkit.TCP(80)))
				w.converge("web")
				before := w.serversOf("web")
				for i := range nodes {
					if name := fmt.Sprintf("n%d", i); slices.Contains(before, testkit.InstanceOf(name)+":30080=100") {
						w.deleteNode(name)
					}
				}
				w.steps(30, 5*time.Second, "web")
				after := w.serversOf("web")
				both := func(server string) bool { return slices.Contains(before, server) }
				if len(before) != 4 || len(after) != min(nodes-4, 4) || slices.ContainsFunc(after, both) {
					t.Errorf("servers %v after %v left", after, before)
				}
			}, func(cfg *cloud.Config) { cfg.Quotas.ServersPerNLB = 4 })
		})
	}
}

// TestLostNodesOfSubsetsAreReplaced: servers whose nodes are gone leave before others come. Each Service that uses a subset of the nodes
// gets others in their place when it has too few.
func TestLostNodesOfSubsetsAreReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes, lost, services, times = 40, 2, 20, 5
		const few = 5 // the low part of a share of 0.8 * 5 * 38 / 24 nodes
		b := newBorder(t, 50, 400, times)
		b.joinUpTo(nodes)
		for i := range services {
			b.own(fmt.Sprint("s", i), 1)
		}
		b.rest()
		before := b.members()
		b.leaveDownTo(nodes - lost)
		b.rest()
		after := b.members()
		for name, n := range before {
			if after[name] < min(n, few) {
				t.Errorf("%s has %d servers, had %d", name, after[name], n)
			}
		}
		b.unrefused()
	})
}

// TestRoomOfAFormerPort: once a port is gone, the others get the servers that the quota of the NLB kept out while its listener was still
// there.
func TestRoomOfAFormerPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): 4})
		w.restart()
		w.addNodes("n1", "n2", "n3")
		w.put(newService("web", testkit.TCP(80, 443)))
		w.converge("web")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
		w.converge("web")
		w.later(time.Minute)
		w.converge("web")
		found := w.listeners(w.balancer("web").ID)
		if len(found) != 1 || len(strings.Fields(found[0])) != 4 {
			t.Errorf("listeners with their servers: %q, want one with 3", found)
		}
	}, func(cfg *cloud.Config) { cfg.Quotas.ServersPerNLB = 4 })
}
