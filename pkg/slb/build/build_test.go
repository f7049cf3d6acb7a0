package build_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func TestBuildClusterBackends(t *testing.T) {
	t.Parallel()
	a, b := "i-a:30080 weight 100", "i-b:30080 weight 100"
	for _, test := range []struct {
		name   string
		change func(*fixture)
		want   []string
	}{
		{"ready nodes", func(*fixture) {}, []string{a, b}},
		{"not ready", func(c *fixture) { c.nodes[1] = testkube.Node("b", testkube.Silent(time.Time{})) }, []string{a}},
		{"silent since a moment ago", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", silentFor(waits.NodeSilent-time.Second))
		}, []string{a, b}},
		{"silent since a moment ago, and shut down", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", silentFor(time.Second), func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: api.TaintNodeShutdown, Effect: corev1.TaintEffectNoSchedule})
			})
		}, []string{a}},
		{"silent for long", func(c *fixture) { c.nodes[1] = testkube.Node("b", silentFor(waits.NodeSilent)) }, []string{a}},
		{"silent by a clock that is far ahead", func(c *fixture) { c.nodes[1] = testkube.Node("b", silentFor(-time.Hour)) }, []string{a}},
		{"says that it is not ready", func(c *fixture) { c.nodes[1] = testkube.Node("b", testkube.NotReady(now)) }, []string{a}},
		{"none ready, one silent", func(c *fixture) {
			c.nodes = []*corev1.Node{testkube.Node("a", testkube.Silent(time.Time{})), testkube.Node("b", testkube.NotReady(now))}
		}, []string{a, "doubt, gone []"}},
		{"none ready", func(c *fixture) { c.nodes = []*corev1.Node{testkube.Node("a", testkube.NotReady(now))} }, []string{"doubt, gone []"}},
		{"no nodes", func(c *fixture) { c.nodes = nil }, []string{"doubt, gone []"}},
		{"excluded", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel(corev1.LabelNodeExcludeBalancers, ""))
		}, []string{a}},
		{"excluded, old name", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel(nodes.LabelExcludeBalancerAlpha, "true"))
		}, []string{a}},
		{"outside our control", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel(nodes.LabelExcludeNode, "true"))
		}, []string{a}},
		{"uninitialized", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.Taint("node.cloudprovider.kubernetes.io/uninitialized"))
		}, []string{a}},
		{"virtual", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel("type", "virtual-kubelet"))
		}, []string{a, "doubt, gone [i-a i-b]"}},
		{"master beside workers", func(c *fixture) { c.nodes[1] = testkube.Node("b", testkube.NodeLabel(nodes.LabelMaster, "")) }, []string{a}},
		{"masters only", func(c *fixture) {
			c.nodes = []*corev1.Node{testkube.Node("a", testkube.NodeLabel(nodes.LabelMaster, ""))}
		}, []string{a}},
		{"masters never", func(c *fixture) {
			c.config.ControlPlaneNodes = backend.ControlPlaneNever
			c.nodes = []*corev1.Node{testkube.Node("a", testkube.NodeLabel(nodes.LabelMaster, ""))}
		}, []string{"doubt, gone []"}},
		{"masters always", func(c *fixture) {
			c.config.ControlPlaneNodes = backend.ControlPlaneAlways
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel(nodes.LabelMaster, ""))
		}, []string{a, b}},
		{"label control-plane alone", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel("node-role.kubernetes.io/control-plane", ""))
		}, []string{a, b}},
		{"autoscaler", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.Taint(nodes.TaintToBeDeleted))
		}, []string{a, "draining i-b:30080 weight 0"}},
		{"cordoned", func(c *fixture) { c.nodes[1] = testkube.Node("b", testkube.Cordoned) }, []string{a, b}},
		{"cordoned and asked for", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.Cordoned)
			annotate(c.svc, annotation.RemoveUnscheduledBackend, "on")
		}, []string{a, "draining i-b:30080 weight 0"}},
		{"no provider ID", func(c *fixture) { c.nodes[1] = testkube.Node("b", testkube.ProviderID("")) }, []string{a, "doubt, gone [i-a]"}},
		{"foreign provider ID", func(c *fixture) { c.nodes[1] = testkube.Node("b", testkube.ProviderID("other://x")) }, []string{a}},
		{"weight", func(c *fixture) { annotate(c.svc, annotation.DefaultWeight, "30") }, []string{"i-a:30080 weight 30", "i-b:30080 weight 30"}},
		{"backend label", func(c *fixture) {
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel("pool", "edge"))
			annotate(c.svc, annotation.BackendLabel, "pool=edge")
		}, []string{b}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantBuilt(t, test.change, backendLines, test.want)
		})
	}
}

func TestBuildLocalBackends(t *testing.T) {
	t.Parallel()
	port := testkube.Port(80, corev1.ProtocolTCP)
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
		{"by number of endpoints",
			[]*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "10.9.0.2@a"),
				testkube.EndpointSlice("web", port, "10.9.1.1@b")}, nil,
			[]string{"i-a:30080 weight 2", "i-b:30080 weight 1"}},
		{"one endpoint in two slices counts once",
			[]*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a"),
				testkube.EndpointSlice("web", port, "10.9.0.1@a", "10.9.0.2@b")}, nil,
			[]string{"i-a:30080 weight 1", "i-b:30080 weight 1"}},
		{"more than the largest weight",
			[]*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, many("a", 200)...), testkube.EndpointSlice("web", port, "10.8.0.1@b")},
			nil,
			[]string{"i-a:30080 weight 100", "i-b:30080 weight 1"}},
		{"terminating", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "!10.9.1.1@b")}, nil,
			[]string{"i-a:30080 weight 1", "draining i-b:30080 weight 0"}},
		{"not ready", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "?10.9.1.1@b")}, nil,
			[]string{"i-a:30080 weight 1"}},
		{"scaled to zero", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port)}, nil, nil},
		{"no slice", nil, nil, []string{"doubt, gone []"}},
		{"endpoint on an unknown node", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "10.9.1.1@z")}, nil,
			[]string{"i-a:30080 weight 1"}},
		{"endpoint without node", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "10.9.1.1")}, nil,
			[]string{"i-a:30080 weight 1"}},
		{"excluded node", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.1@a", "10.9.1.1@b")},
			[]*corev1.Node{testkube.Node("a"), testkube.Node("b", testkube.NodeLabel(corev1.LabelNodeExcludeBalancers, ""))},
			[]string{"i-a:30080 weight 1"}},
		{"another port", []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", testkube.Port(81, corev1.ProtocolTCP), "10.9.0.1@a")}, nil,
			[]string{"held [i-a]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80)
			c.svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			c.slices = test.slices
			if test.nodes != nil {
				c.nodes = test.nodes
			}
			model, _ := c.build()
			if diff := cmp.Diff(test.want, backendLines(model)); diff != "" {
				t.Errorf("backend servers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildPodBackends(t *testing.T) {
	t.Parallel()
	port := testkube.Port(80, corev1.ProtocolTCP)
	c := newFixture(80)
	c.svc.Annotations[annotation.BackendType] = "eni"
	c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", port, "10.9.0.2@a", "10.9.0.1@a", "!10.9.0.3@a", "10.9.0.9@a")}
	c.enis = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2", "10.9.0.3": "eni-3"}
	model, problems := c.build()
	want := []string{
		"eni-1/10.9.0.1:8080 weight 100", "eni-2/10.9.0.2:8080 weight 100", "draining eni-3/10.9.0.3:8080 weight 0", "held [10.9.0.9]",
	}
	if diff := cmp.Diff(want, backendLines(model)); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
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
	c := newFixture(80)
	c.svc.Spec.Ports[0].TargetPort = intstr.FromString("http")
	c.svc.Annotations[annotation.BackendType] = "eni"
	model, _ := c.build()
	if model.Groups[0].Name != "k8s/http/web/default/c1" {
		t.Errorf("group %s, want it named by the target port's name", model.Groups[0].Name)
	}
}

func TestBuildListeners(t *testing.T) {
	t.Parallel()
	udp := func(c *fixture) {
		c.svc.Spec.Ports = append(c.svc.Spec.Ports, testkube.Port(80, corev1.ProtocolUDP))
	}
	set := func(pairs ...string) func(*fixture) {
		return func(c *fixture) {
			for i := 0; i < len(pairs); i += 2 {
				annotate(c.svc, annotation.Suffix("loadbalancer-"+pairs[i]), pairs[i+1])
			}
		}
	}
	both := func(fs ...func(*fixture)) func(*fixture) {
		return func(c *fixture) {
			for _, f := range fs {
				f(c)
			}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*fixture)
		want   []string
	}{
		{"plain", func(*fixture) {}, []string{"tcp:80"}},
		{"TCP and UDP on one port", udp, []string{"tcp:80", "udp:80"}},
		{"scheduler", both(udp, set("scheduler", "wlc")), []string{`tcp:80 Scheduler="wlc"`, `udp:80 Scheduler="wlc"`}},
		{"scheduler of UDP only", both(udp, set("scheduler", "qch")), []string{"tcp:80", `udp:80 Scheduler="qch"`}},
		{"persistence", set("persistence-timeout", "120"), []string{`tcp:80 PersistenceTimeout="120"`}},
		{"established timeout of TCP only", both(udp, set("established-timeout", "60")), []string{`tcp:80 EstablishedTimeout="60"`, "udp:80"}},
		{"proxy protocol", set("proxy-protocol", "on"), []string{`tcp:80 ProxyProtocolV2Enabled="true"`}},
		{"connection drain", set("connection-drain", "on", "connection-drain-timeout", "30"),
			[]string{`tcp:80 ConnectionDrain="on" ConnectionDrainTimeout="30"`}},
		{"connection drain off", set("connection-drain", "off", "connection-drain-timeout", "30"), []string{`tcp:80 ConnectionDrain="off"`}},
		{"health check",
			set("health-check-switch", "off", "health-check-connect-port", "-520", "healthy-threshold", "4", "unhealthy-threshold", "5",
				"health-check-interval", "6", "health-check-connect-timeout", "7"), []string{
				`tcp:80 HealthCheckConnectPort="-520" HealthCheckConnectTimeout="7" HealthCheckInterval="6" HealthCheckSwitch="off" HealthyThreshold="4" UnhealthyThreshold="5"`,
			}},
		{"http health check of TCP",
			set("health-check-type", "http", "health-check-uri", "/ok", "health-check-domain", "$_ip", "health-check-httpcode",
				"http_3xx, http_2xx"),
			[]string{`tcp:80 HealthCheckDomain="$_ip" HealthCheckHttpCode="http_2xx,http_3xx" HealthCheckType="http" HealthCheckURI="/ok"`}},
		{"URI without http check", set("health-check-uri", "/ok"), []string{"tcp:80"}},
		{"http", set("protocol-port", "http:80", "sticky-session", "on", "sticky-session-type", "insert", "cookie-timeout", "60", "idle-timeout",
			"30", "request-timeout", "90",
			"xforwardedfor-proto", "on", "health-check-flag", "on", "health-check-method", "get"), []string{
			`http:80 CookieTimeout="60" HealthCheck="on" HealthCheckMethod="get" IdleTimeout="30" RequestTimeout="90" StickySession="on" StickySessionType="insert" XForwardedFor_proto="on"`,
		}},
		{"https", set("protocol-port", "https:80", "cert-id", "cert-1", "tls-cipher-policy", "tls_cipher_policy_1_2", "http2-enabled", "off"),
			[]string{`https:80 EnableHttp2="off" ServerCertificateId="cert-1" TLSCipherPolicy="tls_cipher_policy_1_2"`}},
		{"https without certificate", set("protocol-port", "https:80"), []string{"https:80"}},
		{"forward", set("protocol-port", "http:80", "forward-port", "80:443"), []string{`http:80 ForwardPort="443" ListenerForward="on"`}},
		{"protocol of UDP stays", both(udp, set("protocol-port", "http:80")), []string{"http:80", "udp:80"}},
		{"access control", set("acl-status", "on", "acl-id", "acl-1", "acl-type", "white"),
			[]string{`tcp:80 AclId="acl-1" AclStatus="on" AclType="white"`}},
		{"access control off", set("acl-status", "off", "acl-id", "acl-1", "acl-type", "white"), []string{`tcp:80 AclStatus="off"`}},
		{"session affinity", func(c *fixture) {
			c.svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}, []string{`tcp:80 PersistenceTimeout="3600"`}},
		{"session affinity with a time", func(c *fixture) {
			c.svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			c.svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10)}}
		}, []string{`tcp:80 PersistenceTimeout="10"`}},
		{"annotation before session affinity", func(c *fixture) {
			c.svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			annotate(c.svc, annotation.PersistenceTimeout, "0")
		}, []string{`tcp:80 PersistenceTimeout="0"`}},
		{"SCTP", func(c *fixture) { c.svc.Spec.Ports = append(c.svc.Spec.Ports, testkube.Port(90, corev1.ProtocolSCTP)) }, []string{"tcp:80"}},
		{"no node port", func(c *fixture) { c.svc.Spec.Ports[0].NodePort = 0 }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantBuilt(t, test.change, listenerLines, test.want)
		})
	}
}

// TestBuildNamesTheProtocolThatNoCLBHas: the problem names what is accepted, and the other ports are served.
func TestBuildNamesTheProtocolThatNoCLBHas(t *testing.T) {
	t.Parallel()
	c := newFixture(80)
	c.svc.Spec.Ports = append(c.svc.Spec.Ports, testkube.Port(90, corev1.ProtocolSCTP))
	want := problem.Problem{Reason: problem.ReasonFeatureNotSupported,
		Message: `spec.ports: protocol "SCTP" of port 90 is not accepted; accepted: TCP, UDP`}
	if _, problems := c.build(); len(problems) != 1 || problems[0] != want {
		t.Errorf("problems = %v, want %v", problems, want)
	}
}

func TestBuildReportsWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
	}{
		{"two families", func(svc *corev1.Service) { svc.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack) }},
		{"SCTP", func(svc *corev1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(90, corev1.ProtocolSCTP))
		}},
		{"no node port", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80, 81)
			test.change(c.svc)
			if _, problems := c.build(); len(problems) != 1 || problems[0].Reason != problem.ReasonFeatureNotSupported {
				t.Errorf("problems = %v, want one %s", problems, problem.ReasonFeatureNotSupported)
			}
		})
	}
}

func TestBuildPortsThatShareANodePortShareTheGroup(t *testing.T) {
	t.Parallel()
	c := newFixture(80)
	c.svc.Spec.Ports = append(c.svc.Spec.Ports, testkube.Port(80, corev1.ProtocolUDP))
	model, _ := c.build()
	if len(model.Groups) != 1 || len(model.Listeners) != 2 {
		t.Errorf("%d groups and %d listeners, want 1 and 2", len(model.Groups), len(model.Listeners))
	}
}
