package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// quotas sets quotas of the cloud.
func quotas(limits cloud.Limits) func(*cloud.Config) {
	return func(c *cloud.Config) { c.Quotas = limits }
}

// addMany makes nodes m1 to mn.
func (w *world) addMany(n int) {
	for i := range n {
		w.addNodes(fmt.Sprintf("m%d", i+1))
	}
}

// onlyGroup is the one server group of the Service.
func (w *world) onlyGroup() alicloud.NLBGroup {
	w.t.Helper()
	groups := w.groups("web")
	if len(groups) != 1 {
		w.t.Fatalf("%d server groups, want one: %v", len(groups), groups)
	}
	return groups[0]
}

// drift has the next pass read everything.
func (w *world) drift() {
	w.t.Helper()
	testkit.Check(w.t, w.Invalidate(w.t.Context(), w.get("web"), "drift"))
}

func TestGoldenServers(t *testing.T) {
	t.Parallel()
	ranges := func(w *world) { w.pods("n1", "n2") }
	pods := edits(testkube.TCP(80), eni)
	runGolden(t, []life{
		{name: "201 servers: two calls", cloud: quotas(cloud.Limits{NLBServersPerCall: 200}), before: func(w *world) {
			w.addMany(201)
		}, service: edits(testkube.TCP(80)), changes: []change{
			{writes: append(slices.Clone(create), "AddServersToServerGroup"), check: serverCount(201)},
		}},
		{name: "201 servers where a call takes 40", cloud: quotas(cloud.Limits{NLBServersPerCall: 40}), before: func(w *world) {
			w.addMany(201)
		}, service: edits(testkube.TCP(80)), changes: []change{
			{writes: []string{
				"CreateLoadBalancer", "CreateServerGroup", "CreateListener", "AddServersToServerGroup=IllegalParamSize.Servers",
				"AddServersToServerGroup", "AddServersToServerGroup",
				"AddServersToServerGroup", "AddServersToServerGroup", "AddServersToServerGroup", "AddServersToServerGroup",
			}, check: serverCount(201)},
		}},
		{name: "pod replaced: the new one joins before the old one leaves", nodes: 3, before: ranges, service: pods, changes: []change{
			{writes: create},
			{do: func(w *world) { w.pods("n2", "n3") }, writes: []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"},
				order: []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"}, check: leadsTo("n2 n3")},
		}},
		{name: "named target port changes its number", nodes: 1, before: func(w *world) {
			w.podsAt(8080, "n1")
		}, service: edits(ports(named(tcpPort(80))), eni), changes: []change{
			{writes: create, check: servesAt(8080)},
			{do: func(w *world) { w.podsAt(9090, "n1") }, writes: []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"},
				order: []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"}, check: servesAt(9090)},
		}},
		{name: "a server to be removed is gone already", nodes: 3, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{do: func(w *world) {
				w.removeServer("n2")
				w.deleteNode("n1")
				w.deleteNode("n2")
			}, writes: []string{"RemoveServersFromServerGroup=ResourceNotFound.BackendServer", "RemoveServersFromServerGroup"},
				check: leadsTo("n3")},
		}},
		{name: "a server to be added is there already", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{do: func(w *world) {
				w.addNodes("n2", "n3")
				w.addServer("n2", "somebody")
			}, writes: []string{"AddServersToServerGroup=DuplicatedParam.Server", "AddServersToServerGroup"}, check: leadsTo("n1 n2 n3")},
		}},
		{name: "Local, 250 pods on a node", nodes: 2, before: func(w *world) {
			w.crowd(250, 25)
		}, service: edits(testkube.TCP(80), testkube.LocalTraffic), changes: []change{
			{writes: create, serves: []string{"TCP:80 i-n1:30080=100 i-n2:30080=10"}},
		}},
		{name: "group of addresses, node without InternalIP", nodes: 2, before: func(w *world) {
			w.internalIP("n1")
		}, service: edits(testkube.TCP(80), with(annotation.ServerGroupType, "Ip")), changes: []change{
			{writes: create, check: leadsTo("n1"), says: []string{"nodes without an InternalIP cannot be backend servers of an Ip group: i-n2"}},
		}},
		{name: "change to a group of addresses, no node with an InternalIP", nodes: 2, service: edits(testkube.TCP(80)), changes: []change{
			{writes: create},
			{edit: edits(with(annotation.ServerGroupType, "Ip")), check: leadsTo("n1 n2"),
				says: []string{"nodes without an InternalIP cannot be backend servers of an Ip group: i-n1, i-n2"}},
		}, restless: true},
		{name: "group of addresses with Local: a node with several pods once, by its weight", nodes: 3,
			before:  func(w *world) { w.internalIP("n1", "n2", "n3"); w.crowd(4, 1) },
			service: edits(testkube.TCP(80), testkube.LocalTraffic, with(annotation.ServerGroupType, "Ip")), changes: []change{
				{writes: create, check: addressesAre("n1:30080=4", "n2:30080=1")},
				{do: func(w *world) {
					w.crowd(2, 1)
				}, writes: []string{"UpdateServerGroupServersAttribute"}, check: addressesAre("n1:30080=2", "n2:30080=1")},
				{do: func(w *world) {
					w.crowd(0, 3)
				}, writes: []string{"UpdateServerGroupServersAttribute", "RemoveServersFromServerGroup"}, check: addressesAre("n2:30080=3")},
			}},
		{name: "group of addresses with Local, pods in two slices: each pod once", nodes: 2,
			before:  func(w *world) { w.pods("n1", "n2"); w.podsAgain("n1") },
			service: append(slices.Clone(pods), testkube.LocalTraffic, with(annotation.ServerGroupType, "Ip")), changes: []change{
				{writes: create, check: addressesAre("n1:8080=100", "n2:8080=100")},
				{do: func(w *world) { w.pods("n2"); w.podsAgain("n1", "n2") }, writes: none, check: addressesAre("n1:8080=100", "n2:8080=100")},
			}},
		{name: "pods without network interfaces in a group of addresses, then nodes", nodes: 2, before: func(w *world) {
			w.putSlice(slice1("10.244.1.5@n1", "10.244.2.5@n2"))
		}, service: append(slices.Clone(pods), with(annotation.ServerGroupType, "Ip")), changes: []change{
			{writes: create, serves: []string{"TCP:80 10.244.1.5:8080=100 10.244.2.5:8080=100"}, check: func(t *testing.T, w *world) {
				t.Helper()
				w.restart()
				w.converge("web")
				if calls := w.calls(); slices.Contains(calls, "DescribeNetworkInterfaces") || len(writes(calls)) > 0 {
					t.Errorf("a new process made the calls %v", calls)
				}
			}},
			{do: func(w *world) {
				w.putSlice(slice1("10.244.1.6@n1", "10.244.2.5@n2"))
			}, writes: []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"},
				serves: []string{"TCP:80 10.244.1.6:8080=100 10.244.2.5:8080=100"}},
			{edit: edits(without(annotation.ServerGroupType), func(svc *corev1.Service) { delete(svc.Annotations, string(annotation.BackendType)) }),
				writes: []string{"CreateServerGroup", "AddServersToServerGroup", "UpdateListenerAttribute", "DeleteServerGroup"},
				serves: []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}},
			{edit: edits(eni, with(annotation.ServerGroupType, "Ip")),
				writes: []string{"CreateServerGroup", "AddServersToServerGroup", "UpdateListenerAttribute", "DeleteServerGroup"},
				serves: []string{"TCP:80 10.244.1.6:8080=100 10.244.2.5:8080=100"}},
		}},
		{name: "group of instances to group of addresses: no gap", nodes: 2, before: func(w *world) {
			w.internalIP("n1", "n2")
		}, service: edits(testkube.TCP(80)), changes: []change{
			{writes: create},
			{edit: edits(with(annotation.ServerGroupType, "Ip")),
				writes: []string{"CreateServerGroup", "AddServersToServerGroup", "UpdateListenerAttribute", "DeleteServerGroup"},
				order:  []string{"CreateServerGroup", "AddServersToServerGroup", "UpdateListenerAttribute", "DeleteServerGroup"},
				check:  leadsTo("n1 n2")},
		}},
		{name: "a pod that terminates has weight 0, then leaves", nodes: 2, before: ranges,
			service: append(slices.Clone(pods), with(annotation.ConnectionDrain, "on"), with(annotation.ConnectionDrainTimeout, "30")),
			changes: []change{
				{writes: create},
				{do: func(w *world) { w.pods("n1", "!n2") }, writes: []string{"UpdateServerGroupServersAttribute"}, check: weights(100, 0)},
				{do: func(w *world) { w.pods("n1") }, writes: []string{"RemoveServersFromServerGroup"}, check: weights(100)},
			}},
		{name: "EndpointSlices are missing for a while, then have no endpoint", nodes: 2, before: ranges, service: pods, changes: []change{
			{writes: create},
			{do: func(w *world) {
				testkit.Check(w.t, w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Replace(nil, ""))
			}, writes: []string{"RemoveServersFromServerGroup"}, check: leadsTo("")},
			{do: func(w *world) { w.pods() }, writes: none, check: leadsTo("")},
			{do: func(w *world) { w.pods("n1") }, writes: []string{"AddServersToServerGroup"}, check: leadsTo("n1")},
		}},
		{name: "all nodes are gone", nodes: 2, service: edits(testkube.TCP(80)), changes: []change{
			{writes: create},
			{do: func(w *world) { w.deleteNode("n1"); w.deleteNode("n2") }, writes: none, check: leadsTo("n1 n2")},
		}},
		{name: "network interfaces cannot be read: other changes go on, and removals", nodes: 3, before: ranges, service: pods, changes: []change{
			{writes: create},
			{do: func(w *world) {
				w.account.Fault(`{"action":"DescribeNetworkInterfaces","code":"InternalError","status":500,"times":0}`)
				w.pods("n2", "n3")
			}, edit: edits(with(annotation.IdleTimeout, "60")), fails: true,
				writes: []string{"UpdateListenerAttribute", "RemoveServersFromServerGroup"}, says: []string{"find the network interfaces of"},
				check: leadsTo("n2")},
			{do: func(w *world) { w.account.ClearFaults(); w.later(time.Minute) }, writes: []string{"AddServersToServerGroup"},
				check: leadsTo("n2 n3")},
		}},
		{name: "pods on a virtual node beside nodes", nodes: 1, before: func(w *world) {
			w.account.Put(testkube.InstanceOf("n2"), "{}")
			testkit.Check(w.t,
				w.factory.Core().V1().Nodes().Informer().GetIndexer().Add(testkube.Node("vk",
					testkube.NodeLabel(nodes.LabelType, nodes.TypeVirtualKubelet), testkube.ProviderID("other://x"))))
			w.putSlice(testkube.EndpointSlice("web", tcpPort(80), w.podAddress("n2")+"@vk"))
		}, service: edits(testkube.TCP(80)), changes: []change{
			{writes: create, check: leadsTo("n1 n2")},
		}},
		{name: "weights: ignored changes, a default, and its removal", nodes: 2,
			service: edits(testkube.TCP(80), with(annotation.DefaultWeight, "7")), changes: []change{
				{writes: create, check: weights(7, 7)},
				{edit: edits(with(annotation.IgnoreWeightUpdate, "on"), with(annotation.DefaultWeight, "9")), writes: none, check: weights(7, 7)},
				{do: func(w *world) { w.addNodes("n3") }, writes: []string{"AddServersToServerGroup"}, check: weights(7, 7, 9)},
				{edit: edits(without(annotation.IgnoreWeightUpdate)), writes: []string{"UpdateServerGroupServersAttribute"}, check: weights(9, 9, 9)},
				{edit: edits(without(annotation.DefaultWeight)), writes: []string{"UpdateServerGroupServersAttribute"}, check: weights(100, 100, 100)},
			}},
		{name: "UDP check interval shorter than its timeout", nodes: 1,
			service: edits(ports(udpPort(53)), with(annotation.HealthCheckFlag, "on"), with(annotation.HealthCheckType, "udp"),
				with(annotation.HealthCheckInterval, "5"), with(annotation.HealthCheckConnectTimeout, "12")), restless: true, changes: []change{
				{says: []string{"loadbalancer-health-check-interval", "loadbalancer-health-check-connect-timeout"},
					serves: []string{"UDP:53 i-n1:30053=100"}},
				{edit: edits(with(annotation.HealthCheckInterval, "12")), check: groupHas("is checked every 12 s", func(g *alicloud.NLBGroup) bool {
					return *g.HealthCheck.Interval == 12 && *g.HealthCheck.ConnectTimeout == 12
				})},
			}},
		{name: "check interval of 51 s on TCP and UDP", nodes: 1,
			service:  edits(ports(tcpPort(80), udpPort(53)), with(annotation.HealthCheckFlag, "on"), with(annotation.HealthCheckInterval, "51")),
			restless: true, changes: []change{
				{says: []string{"loadbalancer-health-check-interval: 51 is not accepted for port 80: at most 50"},
					serves: []string{"TCP:80 i-n1:30080=100", "UDP:53 i-n1:30053=100"}, check: func(t *testing.T, w *world) {
						t.Helper()
						for _, g := range w.groups("web") {
							if got := *g.HealthCheck.Interval == 51; got != (g.Protocol == "UDP") {
								t.Errorf("the %s group is checked every %d s", g.Protocol, *g.HealthCheck.Interval)
							}
						}
					}},
			}},
		{name: "scheduler qch on TCP and UDP", nodes: 1, service: edits(ports(tcpPort(80), udpPort(53)), with(annotation.Scheduler, "qch")),
			changes: []change{
				{says: []string{"loadbalancer-scheduler: qch has no effect on port 80, which is not UDP"},
					serves: []string{"TCP:80 i-n1:30080=100", "UDP:53 i-n1:30053=100"}, check: func(t *testing.T, w *world) {
						t.Helper()
						for _, g := range w.groups("web") {
							if got := strings.EqualFold(*g.Scheduler, "qch"); got != (g.Protocol == "UDP") {
								t.Errorf("the scheduler of the %s group is %s", g.Protocol, *g.Scheduler)
							}
						}
					}},
			}},
		{name: "connection drain without timeout", nodes: 1, service: edits(testkube.TCP(80), with(annotation.ConnectionDrain, "on")),
			changes: []change{
				{writes: create, check: groupHas("drains", func(g *alicloud.NLBGroup) bool { return *g.ConnectionDrain })},
			}},
	})
}

// serverCount checks how many servers the one group has.
func serverCount(n int) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if got := len(w.servers(w.onlyGroup().ID)); got != n {
			t.Errorf("%d servers, want %d", got, n)
		}
	}
}

// leadsTo checks which backends the one listener has.
func leadsTo(names string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if got := w.leadsTo(); got != names {
			t.Errorf("the listener leads to %q, want %q", got, names)
		}
	}
}

// addressesAre checks that the one group has exactly these servers, by their addresses: those of nodes and of the pods on them are the
// same.
func addressesAre(want ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		var addresses []string
		for _, server := range want {
			name, rest, _ := strings.Cut(server, ":")
			addresses = append(addresses, w.podAddress(name)+":"+rest)
		}
		slices.Sort(addresses)
		if got := w.servers(w.onlyGroup().ID); !slices.Equal(got, addresses) {
			t.Errorf("servers %v, want %v", got, addresses)
		}
	}
}

// weights checks the weights of the servers of the one group, in the order of the servers.
func weights(want ...int) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		servers := testkit.Must(w.account.Client.ListNLBServers(t.Context(), w.onlyGroup().ID))(t)
		slices.SortFunc(servers, func(a, b alicloud.NLBServer) int { return strings.Compare(a.ID, b.ID) })
		var got []int
		for _, s := range servers {
			got = append(got, s.Weight)
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("weights %v, want %v", got, want)
		}
	}
}

// groupHas checks something of the one group.
func groupHas(what string, holds func(g *alicloud.NLBGroup) bool) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if g := w.onlyGroup(); !holds(&g) {
			t.Errorf("%s: %+v", what, g)
		}
	}
}

// servesAt checks the port of the only server.
func servesAt(port int) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		servers := testkit.Must(w.account.Client.ListNLBServers(t.Context(), w.onlyGroup().ID))(t)
		if len(servers) != 1 || servers[0].Port != port {
			t.Errorf("servers %+v, want one at the port %d", servers, port)
		}
	}
}

// podsAt is like pods, with another number of the target port.
func (w *world) podsAt(number int32, names ...string) {
	w.t.Helper()
	port := tcpPort(80)
	port.TargetPort = intstr.FromInt32(number)
	var items []string
	for _, name := range names {
		items = append(items, w.podAddress(name)+"@"+name)
	}
	s := testkube.EndpointSlice("web", port, items...)
	s.Name = "web-1"
	w.putSlice(s)
}

// slice1 is the first EndpointSlice of the Service, see [testkube.EndpointSlice].
func slice1(items ...string) *discoveryv1.EndpointSlice {
	s := testkube.EndpointSlice("web", tcpPort(80), items...)
	s.Name = "web-1"
	return s
}

// podsAgain has a second EndpointSlice of the Service name pods.
func (w *world) podsAgain(names ...string) {
	w.t.Helper()
	var items []string
	for _, name := range names {
		items = append(items, w.podAddress(name)+"@"+name)
	}
	s := testkube.EndpointSlice("web", tcpPort(80), items...)
	s.Name = "web-2"
	w.putSlice(s)
}

// crowd has so many pods on n1 and n2.
func (w *world) crowd(on ...int) {
	w.t.Helper()
	var items []string
	for i, n := range on {
		for k := range n {
			items = append(items, fmt.Sprintf("10.200.%d.%d@n%d", i, k, i+1))
		}
	}
	s := testkube.EndpointSlice("web", tcpPort(80), items...)
	s.Name = "web-1"
	w.putSlice(s)
}

// internalIP has Nodes report the addresses of their instances.
func (w *world) internalIP(names ...string) {
	w.t.Helper()
	for _, name := range names {
		testkit.Check(w.t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Update(testkube.Node(name, func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: w.podAddress(name)}}
		})))
	}
}

// removeServer takes a node out of the one group, as somebody in the console would.
func (w *world) removeServer(name string) {
	w.t.Helper()
	testkit.Must(w.account.Client.RemoveNLBServers(w.t.Context(), w.onlyGroup().ID, []alicloud.NLBServer{node(name, 30080, 100)}))(w.t)
	w.later(5 * settle)
}

// addServer puts a node into the one group.
func (w *world) addServer(name, description string) {
	w.t.Helper()
	server := node(name, 30080, 100)
	server.Description = description
	testkit.Must(w.account.Client.AddNLBServers(w.t.Context(), w.onlyGroup().ID, []alicloud.NLBServer{server}))(w.t)
	w.later(5 * settle)
}
