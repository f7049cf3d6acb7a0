package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// testNow is the time of a build.
var testNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// buildCase is an input under construction.
type buildCase struct {
	svc    *corev1.Service
	nodes  []*corev1.Node
	slices []*discoveryv1.EndpointSlice
	config config.Config
	enis   map[string]string
}

func newBuildCase(ports ...int32) *buildCase {
	return &buildCase{
		svc: testService("web", ports...), config: config.Config{ClusterID: testCluster, VSwitchIDs: []string{"vsw-a"}},
		nodes: []*corev1.Node{testNode("a"), testNode("b")},
	}
}

func (c *buildCase) build() (*model.Model, []problem.Problem) {
	params, problems := annotation.Of(c.svc)
	model, more := build.Build(build.Input{
		Service: c.svc, Params: params, Config: c.config, ClusterID: c.config.ClusterID,
		Nodes: backend.Nodes(c.nodes, testInstanceID, testNow), Slices: c.slices, Interfaces: c.enis,
	})
	return model, append(problems, more...)
}

// testSlice makes a slice with one ready endpoint per item "address@node"; a "!" in front makes it terminating, a "?" not
// ready, and no "@" leaves out the node.
func testSlice(port corev1.ServicePort, items ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-" + strings.Join(items, "-"), Namespace: testNamespace, Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port.Name, Protocol: &port.Protocol, Port: ptr.To(port.TargetPort.IntVal)}},
	}
	for _, item := range items {
		endpoint := discoveryv1.Endpoint{}
		switch item[0] {
		case '!':
			endpoint.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}
			item = item[1:]
		case '?':
			endpoint.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(false)}
			item = item[1:]
		}
		address, node, placed := strings.Cut(item, "@")
		endpoint.Addresses = []string{address}
		if placed {
			endpoint.NodeName = &node
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

// memberLines shows the groups of a model for people.
func memberLines(model *model.Model) []string {
	var lines []string
	for _, group := range model.Groups {
		for _, member := range group.Backends {
			lines = append(lines, member.String())
		}
		for _, member := range group.Draining {
			lines = append(lines, "draining "+member.String())
		}
		if group.Doubt {
			lines = append(lines, fmt.Sprintf("doubt, gone %v", sortedGone(group)))
		}
	}
	return lines
}

func sortedGone(group model.Group) []string {
	return slices.Sorted(slices.Values(group.Gone.UnsortedList()))
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func taintedBy(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key}) }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func silentFor(d time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(testNow.Add(-d))
	}
}
func failing(n *corev1.Node) {
	n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(testNow)
}
func withoutProvider(n *corev1.Node) { n.Spec.ProviderID = "" }
func foreignProvider(n *corev1.Node) { n.Spec.ProviderID = "other://x" }

func TestBuildClusterMembers(t *testing.T) {
	t.Parallel()
	a, b := "i-a:30080 weight 100", "i-b:30080 weight 100"
	for _, test := range []struct {
		name   string
		change func(*buildCase)
		want   []string
	}{
		{"ready nodes", func(*buildCase) {}, []string{a, b}},
		{"not ready", func(c *buildCase) { c.nodes[1] = testNode("b", notReady) }, []string{a}},
		{"silent since a moment ago", func(c *buildCase) { c.nodes[1] = testNode("b", silentFor(backend.SilentGrace-time.Second)) }, []string{a, b}},
		{"silent since a moment ago, and shut down", func(c *buildCase) {
			c.nodes[1] = testNode("b", silentFor(time.Second), func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: api.TaintNodeShutdown, Effect: corev1.TaintEffectNoSchedule})
			})
		}, []string{a}},
		{"silent for long", func(c *buildCase) { c.nodes[1] = testNode("b", silentFor(backend.SilentGrace)) }, []string{a}},
		{"silent by a clock that is far ahead", func(c *buildCase) { c.nodes[1] = testNode("b", silentFor(-time.Hour)) }, []string{a}},
		{"says that it is not ready", func(c *buildCase) { c.nodes[1] = testNode("b", failing) }, []string{a}},
		{"none ready, one silent", func(c *buildCase) { c.nodes = []*corev1.Node{testNode("a", notReady), testNode("b", failing)} }, []string{a, "doubt, gone []"}},
		{"none ready", func(c *buildCase) { c.nodes = []*corev1.Node{testNode("a", failing)} }, []string{"doubt, gone []"}},
		{"no nodes", func(c *buildCase) { c.nodes = nil }, []string{"doubt, gone []"}},
		{"excluded", func(c *buildCase) { c.nodes[1] = testNode("b", labelled(corev1.LabelNodeExcludeBalancers, "")) }, []string{a}},
		{"excluded, old name", func(c *buildCase) { c.nodes[1] = testNode("b", labelled(nodes.LabelExcludeBalancerAlpha, "true")) }, []string{a}},
		{"outside our control", func(c *buildCase) { c.nodes[1] = testNode("b", labelled(nodes.LabelExcludeNode, "true")) }, []string{a}},
		{"uninitialized", func(c *buildCase) {
			c.nodes[1] = testNode("b", taintedBy("node.cloudprovider.kubernetes.io/uninitialized"))
		}, []string{a}},
		{"virtual", func(c *buildCase) { c.nodes[1] = testNode("b", labelled("type", "virtual-kubelet")) }, []string{a, "doubt, gone [i-a i-b]"}},
		{"master beside workers", func(c *buildCase) { c.nodes[1] = testNode("b", labelled(nodes.LabelMaster, "")) }, []string{a}},
		{"masters only", func(c *buildCase) { c.nodes = []*corev1.Node{testNode("a", labelled(nodes.LabelMaster, ""))} }, []string{a}},
		{"masters never", func(c *buildCase) {
			c.config.ControlPlaneNodes = backend.ControlPlaneNever
			c.nodes = []*corev1.Node{testNode("a", labelled(nodes.LabelMaster, ""))}
		}, []string{"doubt, gone []"}},
		{"masters always", func(c *buildCase) {
			c.config.ControlPlaneNodes = backend.ControlPlaneAlways
			c.nodes[1] = testNode("b", labelled(nodes.LabelMaster, ""))
		}, []string{a, b}},
		{"label control-plane alone", func(c *buildCase) { c.nodes[1] = testNode("b", labelled("node-role.kubernetes.io/control-plane", "")) }, []string{a, b}},
		{"autoscaler", func(c *buildCase) { c.nodes[1] = testNode("b", taintedBy(nodes.TaintToBeDeleted)) }, []string{a, "draining i-b:30080 weight 0"}},
		{"cordoned", func(c *buildCase) { c.nodes[1] = testNode("b", cordoned) }, []string{a, b}},
		{"cordoned and asked for", func(c *buildCase) {
			c.nodes[1] = testNode("b", cordoned)
			annotate(c.svc, annotation.RemoveUnscheduledBackend, "on")
		}, []string{a, "draining i-b:30080 weight 0"}},
		{"no provider ID", func(c *buildCase) { c.nodes[1] = testNode("b", withoutProvider) }, []string{a, "doubt, gone [i-a]"}},
		{"foreign provider ID", func(c *buildCase) { c.nodes[1] = testNode("b", foreignProvider) }, []string{a}},
		{"weight", func(c *buildCase) { annotate(c.svc, annotation.DefaultWeight, "30") }, []string{"i-a:30080 weight 30", "i-b:30080 weight 30"}},
		{"backend label", func(c *buildCase) {
			c.nodes[1] = testNode("b", labelled("pool", "edge"))
			annotate(c.svc, annotation.BackendLabel, "pool=edge")
		}, []string{b}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newBuildCase(80)
			test.change(c)
			model, _ := c.build()
			if diff := cmp.Diff(test.want, memberLines(model)); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildLocalMembers(t *testing.T) {
	t.Parallel()
	port := testPort(80, corev1.ProtocolTCP)
	many := func(node string, n int) []string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf("10.9.%d.%d@%s", len(node)*10+i/250, i%250, node)
		}
		return items
	}
	for _, test := range []struct {
		name   string
		slices []*discoveryv1.EndpointSlice
		nodes  []*corev1.Node
		want   []string
	}{
		{"by number of endpoints", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a", "10.9.0.2@a"), testSlice(port, "10.9.1.1@b")}, nil,
			[]string{"i-a:30080 weight 2", "i-b:30080 weight 1"}},
		{"one endpoint in two slices counts once", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a"), testSlice(port, "10.9.0.1@a", "10.9.0.2@b")}, nil,
			[]string{"i-a:30080 weight 1", "i-b:30080 weight 1"}},
		{"more than the largest weight", []*discoveryv1.EndpointSlice{testSlice(port, many("a", 200)...), testSlice(port, "10.8.0.1@b")}, nil,
			[]string{"i-a:30080 weight 100", "i-b:30080 weight 1"}},
		{"terminating", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a", "!10.9.1.1@b")}, nil,
			[]string{"i-a:30080 weight 1", "draining i-b:30080 weight 0"}},
		{"not ready", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a", "?10.9.1.1@b")}, nil, []string{"i-a:30080 weight 1"}},
		{"scaled to zero", []*discoveryv1.EndpointSlice{testSlice(port)}, nil, nil},
		{"no slice", nil, nil, []string{"doubt, gone []"}},
		{"endpoint on an unknown node", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a", "10.9.1.1@z")}, nil,
			[]string{"i-a:30080 weight 1", "doubt, gone []"}},
		{"endpoint without node", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a", "10.9.1.1")}, nil, []string{"i-a:30080 weight 1"}},
		{"excluded node", []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.1@a", "10.9.1.1@b")},
			[]*corev1.Node{testNode("a"), testNode("b", labelled(corev1.LabelNodeExcludeBalancers, ""))}, []string{"i-a:30080 weight 1"}},
		{"another port", []*discoveryv1.EndpointSlice{testSlice(testPort(81, corev1.ProtocolTCP), "10.9.0.1@a")}, nil, []string{"doubt, gone []"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newBuildCase(80)
			c.svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			c.slices = test.slices
			if test.nodes != nil {
				c.nodes = test.nodes
			}
			model, _ := c.build()
			if diff := cmp.Diff(test.want, memberLines(model)); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildPodMembers(t *testing.T) {
	t.Parallel()
	port := testPort(80, corev1.ProtocolTCP)
	c := newBuildCase(80)
	c.svc.Annotations[annotation.BackendType] = "eni"
	c.slices = []*discoveryv1.EndpointSlice{testSlice(port, "10.9.0.2@a", "10.9.0.1@a", "!10.9.0.3@a", "10.9.0.9@a")}
	c.enis = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2", "10.9.0.3": "eni-3"}
	model, problems := c.build()
	want := []string{
		"eni-1/10.9.0.1:8080 weight 100", "eni-2/10.9.0.2:8080 weight 100", "draining eni-3/10.9.0.3:8080 weight 0", "doubt, gone []",
	}
	if diff := cmp.Diff(want, memberLines(model)); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if model.Groups[0].Name != "k8s/8080/web/default/c1" {
		t.Errorf("group %s, want it named by the target port", model.Groups[0].Name)
	}
	if len(problems) != 1 || problems[0].Reason != problem.ReasonSkipSyncBackends {
		t.Errorf("problems = %v, want one about the address without interface", problems)
	}
}

func TestBuildNamedTargetPort(t *testing.T) {
	t.Parallel()
	c := newBuildCase(80)
	c.svc.Spec.Ports[0].TargetPort = intstr.FromString("http")
	c.svc.Annotations[annotation.BackendType] = "eni"
	model, _ := c.build()
	if model.Groups[0].Name != "k8s/http/web/default/c1" {
		t.Errorf("group %s, want it named by the target port's name", model.Groups[0].Name)
	}
}

// listenerLines shows the listeners of a model for people.
func listenerLines(model *model.Model) []string {
	var lines []string
	for _, listener := range model.Listeners {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s", listener.ListenerKey, diff.ListenerText(listener.Attributes))))
	}
	return lines
}

func TestBuildListeners(t *testing.T) {
	t.Parallel()
	udp := func(c *buildCase) {
		c.svc.Spec.Ports = append(c.svc.Spec.Ports, testPort(80, corev1.ProtocolUDP))
	}
	set := func(pairs ...string) func(*buildCase) {
		return func(c *buildCase) {
			for i := 0; i < len(pairs); i += 2 {
				annotate(c.svc, annotation.Suffix("loadbalancer-"+pairs[i]), pairs[i+1])
			}
		}
	}
	both := func(fs ...func(*buildCase)) func(*buildCase) {
		return func(c *buildCase) {
			for _, f := range fs {
				f(c)
			}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*buildCase)
		want   []string
	}{
		{"plain", func(*buildCase) {}, []string{"tcp:80"}},
		{"TCP and UDP on one port", udp, []string{"tcp:80", "udp:80"}},
		{"scheduler", both(udp, set("scheduler", "wlc")), []string{`tcp:80 Scheduler="wlc"`, `udp:80 Scheduler="wlc"`}},
		{"scheduler of UDP only", both(udp, set("scheduler", "qch")), []string{"tcp:80", `udp:80 Scheduler="qch"`}},
		{"persistence", set("persistence-timeout", "120"), []string{`tcp:80 PersistenceTimeout="120"`}},
		{"established timeout of TCP only", both(udp, set("established-timeout", "60")), []string{`tcp:80 EstablishedTimeout="60"`, "udp:80"}},
		{"proxy protocol", set("proxy-protocol", "on"), []string{`tcp:80 ProxyProtocolV2Enabled="true"`}},
		{"connection drain", set("connection-drain", "on", "connection-drain-timeout", "30"),
			[]string{`tcp:80 ConnectionDrain="on" ConnectionDrainTimeout="30"`}},
		{"connection drain off", set("connection-drain", "off", "connection-drain-timeout", "30"), []string{`tcp:80 ConnectionDrain="off"`}},
		{"health check", set("health-check-switch", "off", "health-check-connect-port", "-520", "healthy-threshold", "4", "unhealthy-threshold", "5",
			"health-check-interval", "6", "health-check-connect-timeout", "7"), []string{
			`tcp:80 HealthCheckConnectPort="-520" HealthCheckConnectTimeout="7" HealthCheckInterval="6" HealthCheckSwitch="off" HealthyThreshold="4" UnhealthyThreshold="5"`,
		}},
		{"http health check of TCP", set("health-check-type", "http", "health-check-uri", "/ok", "health-check-domain", "$_ip", "health-check-httpcode", "http_3xx, http_2xx"),
			[]string{`tcp:80 HealthCheckDomain="$_ip" HealthCheckHttpCode="http_2xx,http_3xx" HealthCheckType="http" HealthCheckURI="/ok"`}},
		{"URI without http check", set("health-check-uri", "/ok"), []string{"tcp:80"}},
		{"http", set("protocol-port", "http:80", "sticky-session", "on", "sticky-session-type", "insert", "cookie-timeout", "60", "idle-timeout", "30", "request-timeout", "90",
			"xforwardedfor-proto", "on", "health-check-flag", "on", "health-check-method", "get"), []string{
			`http:80 CookieTimeout="60" HealthCheck="on" HealthCheckMethod="get" IdleTimeout="30" RequestTimeout="90" StickySession="on" StickySessionType="insert" XForwardedFor_proto="on"`,
		}},
		{"https", set("protocol-port", "https:80", "cert-id", "cert-1", "tls-cipher-policy", "tls_cipher_policy_1_2", "http2-enabled", "off"),
			[]string{`https:80 EnableHttp2="off" ServerCertificateId="cert-1" TLSCipherPolicy="tls_cipher_policy_1_2"`}},
		{"https without certificate", set("protocol-port", "https:80"), []string{"https:80"}},
		{"forward", set("protocol-port", "http:80", "forward-port", "80:443"), []string{`http:80 ForwardPort="443" ListenerForward="on"`}},
		{"protocol of UDP stays", both(udp, set("protocol-port", "http:80")), []string{"http:80", "udp:80"}},
		{"access control", set("acl-status", "on", "acl-id", "acl-1", "acl-type", "white"), []string{`tcp:80 AclId="acl-1" AclStatus="on" AclType="white"`}},
		{"access control off", set("acl-status", "off", "acl-id", "acl-1", "acl-type", "white"), []string{`tcp:80 AclStatus="off"`}},
		{"session affinity", func(c *buildCase) { c.svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, []string{`tcp:80 PersistenceTimeout="3600"`}},
		{"session affinity with a time", func(c *buildCase) {
			c.svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			c.svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10)}}
		}, []string{`tcp:80 PersistenceTimeout="10"`}},
		{"annotation before session affinity", func(c *buildCase) {
			c.svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			annotate(c.svc, annotation.PersistenceTimeout, "0")
		}, []string{`tcp:80 PersistenceTimeout="0"`}},
		{"SCTP", func(c *buildCase) { c.svc.Spec.Ports = append(c.svc.Spec.Ports, testPort(90, corev1.ProtocolSCTP)) }, []string{"tcp:80"}},
		{"no node port", func(c *buildCase) { c.svc.Spec.Ports[0].NodePort = 0 }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newBuildCase(80)
			test.change(c)
			model, _ := c.build()
			if diff := cmp.Diff(test.want, listenerLines(model)); diff != "" {
				t.Errorf("listeners (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBuildNamesTheProtocolThatNoCLBHas: one bad port is told with what is accepted, and holds no other up.
func TestBuildNamesTheProtocolThatNoCLBHas(t *testing.T) {
	t.Parallel()
	c := newBuildCase(80)
	c.svc.Spec.Ports = append(c.svc.Spec.Ports, testPort(90, corev1.ProtocolSCTP))
	want := problem.Problem{Reason: problem.ReasonFeatureNotSupported, Message: `spec.ports: protocol "SCTP" of port 90 is not accepted; accepted: TCP, UDP`}
	if _, problems := c.build(); len(problems) != 1 || problems[0] != want {
		t.Errorf("problems = %v, want %v", problems, want)
	}
}

func TestBuildTellsWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
	}{
		{"two families", func(svc *corev1.Service) { svc.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack) }},
		{"SCTP", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(90, corev1.ProtocolSCTP)) }},
		{"no node port", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newBuildCase(80, 81)
			test.change(c.svc)
			if _, problems := c.build(); len(problems) != 1 || problems[0].Reason != problem.ReasonFeatureNotSupported {
				t.Errorf("problems = %v, want one %s", problems, problem.ReasonFeatureNotSupported)
			}
		})
	}
}

func TestBuildPortsThatShareANodePortShareTheGroup(t *testing.T) {
	t.Parallel()
	c := newBuildCase(80)
	c.svc.Spec.Ports = append(c.svc.Spec.Ports, testPort(80, corev1.ProtocolUDP))
	model, _ := c.build()
	if len(model.Groups) != 1 || len(model.Listeners) != 2 {
		t.Errorf("%d groups and %d listeners, want 1 and 2", len(model.Groups), len(model.Listeners))
	}
}
