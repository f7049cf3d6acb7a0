package backend_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// given is what a test resolves.
type given struct {
	nodes  []*corev1.Node
	slices []*discoveryv1.EndpointSlice
	port   corev1.ServicePort
	change func(*backend.Input)
}

func (g given) resolve() (backend.Set, []problem.Problem) {
	in := backend.Input{Facts: backend.Facts{Nodes: backend.Nodes(g.nodes, testkube.InstanceID, now), Slices: g.slices},
		Family: discoveryv1.AddressTypeIPv4}
	if g.change != nil {
		g.change(&in)
	}
	port := g.port
	if port.Port == 0 {
		port = port80
	}
	return backend.NewResolver(in).Backends(port, "")
}

var port80 = testkube.Port(80, corev1.ProtocolTCP)

func local(in *backend.Input) { in.Local = true }

// pods has each address of a pod on a network interface of its own.
func pods(in *backend.Input) {
	in.Pods, in.Interfaces = true, map[string]string{}
	for _, slice := range in.Slices {
		for _, endpoint := range slice.Endpoints {
			in.Interfaces[endpoint.Addresses[0]] = "eni-" + endpoint.Addresses[0]
		}
	}
}

func endpointsOf(items ...string) []*discoveryv1.EndpointSlice {
	return []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port80, items...)}
}

// text shows a set for people.
func text(set backend.Set) []string {
	var lines []string
	for b := range set.All {
		lines = append(lines, fmt.Sprintf("%s:%d %d", b.ID, b.Port, b.Weight))
	}
	for _, b := range set.Draining {
		lines = append(lines, fmt.Sprintf("draining %s:%d %d", b.ID, b.Port, b.Weight))
	}
	if set.Doubt {
		lines = append(lines, "doubt")
	}
	return lines
}

func (g given) want(t *testing.T, lines ...string) {
	t.Helper()
	set, _ := g.resolve()
	if diff := cmp.Diff(lines, text(set)); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
}

// TestPortRenameEmptiesNoGroup: slices follow a renamed port a moment later. A numeric target port is as good as the name; without
// one, what serves stays.
func TestPortRenameEmptiesNoGroup(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]func(*backend.Input){"Local": local, "pods": pods} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := given{nodes: testkube.Nodes("a"), slices: endpointsOf("10.9.0.1@a"), port: port80, change: mode}
			before, _ := g.resolve()
			g.port.Name = "renamed"
			if after, _ := g.resolve(); !cmp.Equal(text(before), text(after)) {
				t.Errorf("numeric target port: %v, want %v", text(after), text(before))
			}
			g.port.TargetPort = intstr.FromString("http")
			if set, _ := g.resolve(); len(mayLeave(set, "i-a", "10.9.0.1")) == 2 {
				t.Errorf("named target port: %+v, want one that holds the backend", set)
			}
			g.slices = endpointsOf()
			if set, _ := g.resolve(); set.Doubt || set.Held.Len() > 0 {
				t.Error("a Service without endpoints is in doubt")
			}
		})
	}
}

// TestAllNodesLeavingTakesNoTraffic: nodes that are about to go drain, unless nothing else is ready.
func TestAllNodesLeavingTakesNoTraffic(t *testing.T) {
	t.Parallel()
	leaving := testkube.Taint(nodes.TaintToBeDeleted)
	all := []*corev1.Node{testkube.Node("a", leaving), testkube.Node("b", leaving)}
	some := []*corev1.Node{testkube.Node("a", leaving), testkube.Node("b")}
	given{nodes: all}.want(t, "i-a:30080 100", "i-b:30080 100", "doubt")
	given{nodes: some}.want(t, "i-b:30080 100", "draining i-a:30080 0")
	slices := endpointsOf("10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b")
	given{nodes: all, slices: slices, change: local}.want(t, "i-a:30080 2", "i-b:30080 1")
	given{nodes: some, slices: slices, change: local}.want(t, "i-b:30080 1", "draining i-a:30080 0")
}

// TestStaggeredSilenceLeavesAllBackends: nodes whose kubelets fall silent one after the other leave one after the other; with the last
// ready one, all that may still work come back.
func TestStaggeredSilenceLeavesAllBackends(t *testing.T) {
	t.Parallel()
	silent, broken := testkube.Silent(now.Add(-time.Hour)), testkube.NotReady(now.Add(-time.Hour))
	given{nodes: []*corev1.Node{testkube.Node("a", silent), testkube.Node("b", silent), testkube.Node("c")}}.want(t, "i-c:30080 100")
	given{nodes: []*corev1.Node{testkube.Node("a", silent), testkube.Node("b", silent), testkube.Node("c", silent), testkube.Node("d", broken)}}.
		want(t, "i-a:30080 100", "i-b:30080 100", "i-c:30080 100", "doubt")
}

func created(at time.Time) func(*corev1.Node) {
	return func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(at) }
}

// TestTwoNodesOfOneInstance: the older Node stands for the instance, whatever the other one says.
func TestTwoNodesOfOneInstance(t *testing.T) {
	t.Parallel()
	twin := testkube.Node("a-twin", testkube.ProviderID(testkube.Region+".i-b"), testkube.Taint(nodes.TaintToBeDeleted), created(now))
	g := given{nodes: []*corev1.Node{twin, testkube.Node("b", created(now.Add(-time.Hour)))}}
	g.want(t, "i-b:30080 100")
	if _, problems := g.resolve(); len(problems) != 1 || !strings.Contains(problems[0].Message, "a-twin") {
		t.Errorf("problems %v, want one about the twin", problems)
	}
}

// TestOneAddressTwoPorts: pods with the host's network share its address; each is a backend at its own number.
func TestOneAddressTwoPorts(t *testing.T) {
	t.Parallel()
	first, second := endpointsOf("10.9.0.1@a")[0], endpointsOf("10.9.0.1@a")[0]
	second.Ports[0].Port = ptr.To[int32](9090)
	given{slices: []*discoveryv1.EndpointSlice{first, second}, change: pods}.want(t, "eni-10.9.0.1:8080 100", "eni-10.9.0.1:9090 100")
}

// TestUnresolvedNodeNotForever: a Node without provider ID may be any backend, for minutes.
func TestUnresolvedNodeNotForever(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration][]string{
		time.Minute:          {"i-a:30080 100", "doubt"},
		waits.NodeUnresolved: {"i-a:30080 100"},
	} {
		given{nodes: []*corev1.Node{testkube.Node("a"), testkube.Node("new", testkube.ProviderID(""), created(now.Add(-age)))}}.want(t, want...)
	}
}

// TestOnlyTerminatingEndpointsKeepServing: as kube-proxy does.
func TestOnlyTerminatingEndpointsKeepServing(t *testing.T) {
	t.Parallel()
	ending, rolling := endpointsOf("!10.9.0.1@a", "!10.9.0.2@a", "!10.9.1.1@b"), endpointsOf("!10.9.0.1@a", "10.9.1.1@b")
	given{nodes: testkube.Nodes("a", "b"), slices: ending, change: local}.want(t, "i-a:30080 2", "i-b:30080 1")
	given{nodes: testkube.Nodes("a", "b"), slices: rolling, change: local}.want(t, "i-b:30080 1", "draining i-a:30080 0")
	given{slices: ending, change: pods}.want(t, "eni-10.9.0.1:8080 100", "eni-10.9.0.2:8080 100", "eni-10.9.1.1:8080 100")
	given{slices: rolling, change: pods}.want(t, "eni-10.9.1.1:8080 100", "draining eni-10.9.0.1:8080 0")
}

// TestEndpointsOnIneligibleNodesAreReported: with Local they get no traffic, and nothing else says so.
func TestEndpointsOnIneligibleNodesAreReported(t *testing.T) {
	t.Parallel()
	g := given{
		nodes:  []*corev1.Node{testkube.Node("a"), testkube.Node("m", testkube.NodeLabel(nodes.LabelMaster, ""))},
		slices: endpointsOf("10.9.0.1@a", "10.9.1.1@m"), change: local,
	}
	g.want(t, "i-a:30080 1")
	if _, problems := g.resolve(); len(problems) != 1 || !strings.Contains(problems[0].Message, ": m") {
		t.Errorf("problems %v, want one about node m", problems)
	}
}

// TestMessagesStaySimilar: what lists many names is short, and the same after a small change.
func TestMessagesStaySimilar(t *testing.T) {
	t.Parallel()
	message := func(n int) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf("10.9.%d.%d@a", i/250, i%250))
		}
		_, problems := given{slices: endpointsOf(items...), change: func(in *backend.Input) { in.Pods = true }}.resolve()
		return problems[0].Message
	}
	if a, b := message(500), message(501); a != b || len(a) > 200 {
		t.Errorf("messages %q and %q, want one short one", a, b)
	}
}

// BenchmarkBackends resolves a port of a Service with 1,000 nodes.
func BenchmarkBackends(b *testing.B) {
	var all []*corev1.Node
	for i := range 1000 {
		all = append(all, testkube.Node(fmt.Sprintf("n%04d", i)))
	}
	reduced := backend.Nodes(all, testkube.InstanceID, now)
	in := backend.Input{Facts: backend.Facts{Nodes: reduced, Slices: endpointsOf("10.9.0.1@n0001")}, Params: annotation.Params{}}
	b.ReportAllocs()
	for b.Loop() {
		if set, _ := backend.NewResolver(in).Backends(port80, ""); set.Len() != 1000 {
			b.Fatal(set.Len())
		}
	}
}
