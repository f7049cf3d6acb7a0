package nlb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// fullOfPods is an NLB that takes so many servers, and the Service web with externalTrafficPolicy Local.
func (w *world) fullOfPods(servers int) {
	w.t.Helper()
	w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): servers})
	w.restart()
	w.put(newService("web", testkit.TCP(80), func(svc *corev1.Service) {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}))
}

func quotaOf(servers int) func(*cloud.Config) {
	return func(cfg *cloud.Config) { cfg.Quotas.ServersPerNLB = servers }
}

// zoned adds nodes of a zone.
func (w *world) zoned(zone string, names ...string) {
	w.t.Helper()
	w.addNodes(names...)
	for _, name := range names {
		testkit.Check(w.t,
			w.factory.Core().V1().Nodes().Informer().GetIndexer().Update(testkit.Node(name, func(n *corev1.Node) {
				n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
			})))
	}
}

// podsOn has so many pods of web on each node.
func (w *world) podsOn(pods map[string]int) {
	w.t.Helper()
	var items []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		for i := range pods[name] {
			items = append(items, fmt.Sprintf("10.244.%s.%d@%s", name[1:], i+1, name))
		}
	}
	w.putSlice(slice1(items...))
}

// onNodes are the nodes behind web.
func (w *world) onNodes() []string {
	w.t.Helper()
	var names []string
	for _, server := range w.serversOf("web") {
		id, _, _ := strings.Cut(server, ":")
		names = append(names, strings.TrimPrefix(id, "i-"))
	}
	slices.Sort(names)
	return names
}

// unrefused checks that nothing was refused.
func (w *world) unrefused() {
	w.t.Helper()
	for _, call := range w.calls() {
		if strings.Contains(call, "=") {
			w.t.Errorf("refused: %s", call)
		}
	}
}

// TestPodsLeaveAFullNLB: pods leave nodes of an NLB that has as many servers as it may have, and others run on further nodes. What is gone
// makes room first.
func TestPodsLeaveAFullNLB(t *testing.T) {
	t.Parallel()
	for _, further := range []int{2, 3} { // all fit afterwards, and not
		t.Run(fmt.Sprint(further), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1", "n2", "n3", "n4", "n5", "n6", "n7")
				w.podsOn(map[string]int{"n1": 1, "n2": 1, "n3": 1, "n4": 1})
				w.fullOfPods(4)
				w.converge("web")
				pods := map[string]int{"n1": 1, "n2": 1}
				for i := range further {
					pods[fmt.Sprintf("n%d", 5+i)] = 1
				}
				w.podsOn(pods)
				w.converge("web")
				w.later(time.Minute)
				w.converge("web")
				w.unrefused()
				if got, want := w.onNodes(), []string{"n1", "n2", "n5", "n6"}; !slices.Equal(got, want) {
					t.Errorf("nodes %v, want %v", got, want)
				}
				w.quiet("web")
			}, quotaOf(4))
		})
	}
}

// TestEventAboutAFullNLB: one event says how many backends get no traffic, and nothing that does not help on an NLB.
func TestEventAboutAFullNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2", "n3")
		w.podsOn(map[string]int{"n1": 1, "n2": 1, "n3": 1})
		w.fullOfPods(2)
		w.converge("web")
		events := slices.DeleteFunc(w.newEvents(), func(e string) bool { return !strings.Contains(e, problem.ReasonQuotaReached) })
		if len(events) != 1 || !strings.Contains(events[0], "1 of 3 backends of a port get no traffic: the NLB can have 2") ||
			strings.Contains(events[0], "use an NLB") {
			t.Errorf("events %q, want one with the numbers", events)
		}
	}, quotaOf(2))
}

// TestPlacesOfALaterZone: the pods of one zone fill an NLB, then most pods run in another zone, which gets its share of the places. For
// each place a server leaves, then another one comes; nothing is refused, nothing else leaves, and a restart in the middle changes nothing.
func TestPlacesOfALaterZone(t *testing.T) {
	t.Parallel()
	const places = 6
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.zoned("zone-0", "n0", "n1", "n2", "n3", "n4", "n5")
				w.zoned("zone-1", "n6", "n7", "n8", "n9")
				pods := map[string]int{"n0": 1, "n1": 1, "n2": 1, "n3": 1, "n4": 1, "n5": 1}
				w.podsOn(pods)
				w.fullOfPods(places)
				w.converge("web")
				w.calls()
				for _, name := range []string{"n6", "n7", "n8", "n9"} {
					pods[name] = 3
				}
				w.podsOn(pods)
				for range 60 {
					w.steps(1, settle, "web")
					if restarts {
						w.restart()
					}
					if n := len(w.onNodes()); n < places-1 {
						t.Fatalf("%d servers", n)
					}
				}
				zones := map[bool]int{}
				for _, name := range w.onNodes() {
					zones[name >= "n6"]++
				}
				if zones[true] != places/2 || zones[false] != places/2 {
					t.Errorf("servers on %v, want as many in both zones", w.onNodes())
				}
				want := []string{"RemoveServersFromServerGroup", "AddServersToServerGroup"}
				if got := writes(w.calls()); !slices.Equal(got, slices.Repeat(want, places/2)) {
					t.Errorf("writes %v", got)
				}
				w.quiet("web")
			}, quotaOf(places))
		})
	}
}

// TestPlacesByWeight: a node with many more pods takes the place of another one of its zone, also on an NLB, and one pod more or less
// changes nothing then.
func TestPlacesByWeight(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.zoned("zone-0", "n1", "n2", "n3")
		w.podsOn(map[string]int{"n1": 2, "n2": 2, "n3": 1})
		w.fullOfPods(2)
		w.converge("web")
		for _, step := range []struct {
			pods map[string]int
			want []string
		}{
			{map[string]int{"n1": 2, "n2": 2, "n3": 3}, []string{"n1", "n2"}},
			{map[string]int{"n1": 2, "n2": 3, "n3": 4}, []string{"n2", "n3"}},
			{map[string]int{"n1": 3, "n2": 2, "n3": 4}, []string{"n2", "n3"}},
		} {
			w.podsOn(step.pods)
			w.converge("web")
			w.unrefused()
			if got := w.onNodes(); !slices.Equal(got, step.want) {
				t.Errorf("pods %v: nodes %v, want %v", step.pods, got, step.want)
			}
			w.quiet("web")
		}
	}, quotaOf(2))
}

// TestPortsWithPodsOnOtherNodes: the two ports of a Service are served by pods on different nodes, and the NLB is full. Then many pods of
// the first port run on the nodes of the second one. What the server group of one port has says nothing about the other one: its servers
// change one by one, so that it always has one that is available.
func TestPortsWithPodsOnOtherNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n0", "n1", "n2", "n3")
		w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): 4})
		w.restart()
		svc := newService("web", testkit.TCP(80, 443), func(svc *corev1.Service) {
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		})
		put := func(i int, items ...string) {
			slice := testkit.EndpointSlice("web", svc.Spec.Ports[i], items...)
			slice.Name = fmt.Sprint("web-", i)
			w.putSlice(slice)
		}
		put(0, "10.0.0.1@n0", "10.0.0.2@n1")
		put(1, "10.0.0.3@n2", "10.0.0.4@n3")
		w.put(svc)
		w.converge("web")
		w.unrefused()
		put(0, "10.0.0.1@n0", "10.0.0.2@n1", "10.0.1.1@n2", "10.0.1.2@n2", "10.0.1.3@n2", "10.0.2.1@n3", "10.0.2.2@n3", "10.0.2.3@n3")
		for range 60 {
			_, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			for range 10 {
				for _, group := range w.groups("web") {
					if w.available(group.ID) == 0 {
						t.Fatalf("no server of %s is available", group.Name)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		w.unrefused()
		for _, group := range w.groups("web") {
			servers := w.servers(group.ID)
			if len(servers) != 2 || !strings.HasPrefix(servers[0], "i-n2:") || !strings.HasPrefix(servers[1], "i-n3:") {
				t.Errorf("%s: servers %v, want those of n2 and n3", group.Name, servers)
			}
		}
		w.quiet("web")
	}, quotaOf(4))
}

// available returns how many servers of a group take traffic.
func (w *world) available(groupID string) int {
	w.t.Helper()
	n := 0
	for _, server := range testkit.Must(w.account.Client.ListNLBServers(w.t.Context(), groupID))(w.t) {
		if server.Status == alicloud.NLBServerAvailable {
			n++
		}
	}
	return n
}
