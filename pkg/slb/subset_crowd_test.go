package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestSubsetLargerThanTheCluster: a Service that asks for more nodes than there are has all of them, and takes none from other Services.
func TestSubsetLargerThanTheCluster(t *testing.T) {
	t.Parallel()
	const nodes = 5
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: quota.NewBook(nil)})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range 3 {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		f.rest()
		large := testService("large", 80)
		annotate(large, annotation.BackendSubset, "9999")
		f.put(large)
		f.rest()
		for _, name := range []string{"web0", "web1", "web2", "large"} {
			if n := len(f.backendsOf(name)["30080"]); n != nodes {
				t.Errorf("%s has %d of %d nodes", name, n, nodes)
			}
		}
	})
}

// TestGroupsAndAttachments: an instance is behind a CLB once for all Services of a group. With more of them than an instance can be behind
// CLBs, each has as many backend servers as its share of the CLB, and Services beside the group have theirs.
func TestGroupsAndAttachments(t *testing.T) {
	t.Parallel()
	const nodes, attachments, members, grouping, alone, shared = 6, 5, 24, 12, 3, 4
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments, BackendsPerLB: members}, config.Config{
			BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(members, attachments),
		})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range grouping {
			f.put(born(overflowing(grouped(nameOfSharing(i), "edge", int32(1000+i))), int64(i))) //nolint:gosec // a port
		}
		for i := range alone {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		f.rest()
		groups := 0
		for name, lb := range f.state() {
			for group, servers := range lb.Groups {
				want := nodes
				if len(lb.Groups) > 1 {
					want = shared
				}
				if groups++; len(servers) != want {
					t.Errorf("%s of %s has %d nodes, want %d", group, name, len(servers), want)
				}
			}
		}
		if groups != grouping+alone {
			t.Errorf("%d vServer groups, want %d", groups, grouping+alone)
		}
		for _, call := range f.emulator.NewCalls() {
			if call.Code != "" {
				t.Errorf("%s: %s", call.Action, call.Code)
			}
		}
	})
}

// TestAllNodesAndSomeInGroups: an instance is behind the CLB of a group once, also where one Service of the group has all nodes and another
// one a number of them. The quota is just enough for the groups, so that every Service has what it asks for.
func TestAllNodesAndSomeInGroups(t *testing.T) {
	t.Parallel()
	const nodes, groups = 3, 6
	for name, someFirst := range map[string]bool{"all nodes first": false, "some nodes first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := smallWorld(t, 50, groups)
			for i := range nodes {
				w.addNode(nodeName(i))
			}
			want := map[string]int{}
			var names []string
			for i := range groups {
				all, some := grouped(fmt.Sprint("all", i), fmt.Sprint("group", i), 80), grouped(fmt.Sprint("some", i), fmt.Sprint("group", i), 81)
				annotate(some, annotation.BackendSubset, "1")
				want[all.Name], want[some.Name] = nodes, 1
				pair := []*corev1.Service{all, some}
				if someFirst {
					slices.Reverse(pair)
				}
				for k, svc := range pair {
					w.put(born(svc, int64(len(pair)*i+k)))
					names = append(names, svc.Name)
				}
			}
			for range 2 {
				for _, name := range names {
					w.mustPass(name)
				}
			}
			for _, name := range names {
				for port, ids := range w.backendsOf(name) {
					if len(ids) != want[name] {
						t.Errorf("%s has %v behind %s, want %d", name, ids, port, want[name])
					}
				}
				if len(w.backendsOf(name)) != 1 {
					t.Errorf("%s has vServer groups %v", name, w.backendsOf(name))
				}
			}
			if calls := refused(w.calls()); len(calls) > 0 {
				t.Errorf("refused: %v", calls)
			}
			w.silent("a pass more", names...)
			w.restart()
			w.silent("a new process", names...)
		})
	}
}

// TestUnknownLargerQuotaTakesNothingAway: all Services have all nodes, because the account has a larger quota than the manager knows of.
// What the instances are already proves that, also to a new process, and while one more node has just joined. No Service loses a backend
// server.
func TestUnknownLargerQuotaTakesNothingAway(t *testing.T) {
	t.Parallel()
	const nodes, assumed, services = 4, 5, 6 // one Service more than the assumed quota allows
	for _, test := range []struct {
		name    string
		restart bool
		change  func(*world)
		nodes   int
	}{
		{"nothing happens", true, func(*world) {}, nodes},
		{"a node joins", false, func(w *world) { w.addNode("late") }, nodes + 1},
		{"a node leaves", false, func(w *world) { w.deleteNode(nodeName(0)) }, nodes - 1},
		{"a node joined before the restart", true, func(w *world) { w.addNode("late") }, nodes + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, cloud.Limits{LBsPerInstance: 100})
			reads := func(value int) {
				w.config.Quotas = quota.NewBook(nil)
				w.config.Quotas.Read(map[quota.Code]quota.Reading{quota.CLBsPerInstance: {Value: value}})
				w.restart()
			}
			reads(100)
			var names []string
			all := func() {
				w.cacheServices(names...)
				for range 2 { // what every Service has is known after the first round
					for _, name := range names {
						w.mustPass(name)
					}
				}
			}
			for i := range nodes {
				w.addNode(nodeName(i))
			}
			for i := range services {
				names = append(names, nameOfSharing(i))
				w.put(testService(names[i], 80))
			}
			all()
			reads(assumed)
			if !test.restart {
				all()
			}
			w.calls()
			test.change(w)
			all()
			for _, name := range names {
				if has := w.backendsOf(name)["30080"]; len(has) != test.nodes {
					t.Errorf("%s has %v, want %d", name, has, test.nodes)
				}
			}
			for _, call := range w.calls() {
				if strings.Contains(call, "Remove") && test.nodes >= nodes {
					t.Errorf("called %s", call)
				}
			}
		})
	}
}

// TestLargerQuotaIsProvenLate: after a restart, the first Services choose before it is known that the account has a larger quota than is
// assumed. Once it is, they get the node that has joined meanwhile, too, without any other event.
func TestLargerQuotaIsProvenLate(t *testing.T) {
	t.Parallel()
	const nodes, assumed, services = 4, 5, 8
	synctest.Test(t, func(t *testing.T) {
		reads := func(value int) config.Config {
			book := quota.NewBook(nil)
			book.Read(map[quota.Code]quota.Reading{quota.CLBsPerInstance: {Value: value}})
			return config.Config{BackendSubset: backend.SubsetAuto, Quotas: book}
		}
		f := newFleetIn(t, cloud.Limits{LBsPerInstance: 100}, reads(100))
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range services {
			f.put(testService(nameOfSharing(i), 80))
		}
		f.rest()
		f.stop()
		f.config.Quotas = reads(assumed).Quotas
		f.createFleetNode("late")
		f.api = processClient(t, f.emulator)
		f.start()
		f.rest()
		for i := range services {
			if has := f.backendsOf(nameOfSharing(i))["30080"]; len(has) != nodes+1 {
				t.Errorf("%s has %v, want %d", nameOfSharing(i), has, nodes+1)
			}
		}
	})
}
