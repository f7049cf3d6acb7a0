package nlb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// mustReport checks that an event contains each of the texts.
func mustReport(t *testing.T, events []string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(strings.ReplaceAll(e, annotation.Prefixes[0], ""), text)
		}) {
			t.Errorf("no event holds %q:\n%s", text, strings.Join(events, "\n"))
		}
	}
}

func (w *world) listener(id string, at int) alicloud.NLBListener {
	w.t.Helper()
	return testkit.Must(w.account.Client.ListNLBListeners(w.t.Context(), []string{id}))(w.t)[at]
}

// TestDiscoveredZones: an NLB of which nobody says where it is to be is created where the nodes are, and stays there when they move.
func TestDiscoveredZones(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2")
		w.addressOf("n1", "10.1.0.1")
		w.addressOf("n2", "10.2.0.1")
		w.serve(0, testkube.TCP(80), without(annotation.ZoneMaps))
		lb := w.balancer("web")
		if got := build.ZonesText(lb.Zones); got != twoZones {
			t.Errorf("zones %s", got)
		}
		mustReport(t, w.newEvents(), "Normal ZonesChosen", "loadbalancer-zone-maps: the NLB is created in "+twoZones+", where the most nodes are")
		w.addressOf("n2", "10.1.0.2")
		w.quiet("web")
	})
}

// TestMissingZones: with nodes in one zone only nothing is made.
func TestMissingZones(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps))
		mustReport(t, w.newEvents(), "loadbalancer-zone-maps: an NLB needs its zones and vSwitches")
		w.addressOf("n1", "10.1.0.1")
		w.converge("web")
		mustReport(t, w.newEvents(), "the nodes are in cn-hangzhou-a:vsw-a")
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
	})
}

func TestEveryListenerSetting(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "TCPSSL:443"), with(annotation.CertID, "cert-1"),
			with(annotation.CACert, "on"),
			with(annotation.CACertID, "ca-1"), with(annotation.TLSCipherPolicy, "tls_cipher_policy_1_2"), with(annotation.ALPN, "on"),
			with(annotation.ALPNPolicy, "HTTP2Preferred"),
			with(annotation.IdleTimeout, "300"), with(annotation.Cps, "1000"), with(annotation.ProxyProtocol, "on"),
			with(annotation.PPV2VPCID, "on"),
			with(annotation.AdditionalCertIDs, "cert-2,cert-3"))
		l := w.listener(w.balancer("web").ID, 0)
		got := []any{l.Protocol, l.CertificateIDs, l.CACertificateIDs, *l.CAEnabled, *l.SecurityPolicyID, *l.ALPNEnabled, *l.ALPNPolicy,
			*l.IdleTimeout, *l.Cps, *l.ProxyProtocol, *l.ProxyProtocolV2}
		want := []any{"TCPSSL", []string{"cert-1"}, []string{"ca-1"}, true, "tls_cipher_policy_1_2", true, "HTTP2Preferred", 300, 1000, true,
			alicloud.ProxyProtocolV2{VPCID: true}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("listener (-want +got):\n%s", diff)
		}
		if ids := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), l.ID))(t); !slices.Equal(ids, []string{"cert-2", "cert-3"}) {
			t.Errorf("additional certificates %v", ids)
		}
		w.quiet("web")
		w.change("web", without(annotation.IdleTimeout), without(annotation.Cps), without(annotation.CACert), without(annotation.CACertID),
			without(annotation.ALPN),
			without(annotation.ALPNPolicy), without(annotation.ProxyProtocol), without(annotation.PPV2VPCID), without(annotation.AdditionalCertIDs),
			without(annotation.TLSCipherPolicy))
		w.converge("web")
		l = w.listener(l.LoadBalancerID, 0)
		reverted := []any{*l.CAEnabled, *l.SecurityPolicyID, *l.ALPNEnabled, *l.IdleTimeout, *l.Cps, *l.ProxyProtocol}
		if diff := cmp.Diff([]any{false, "tls_cipher_policy_1_0", false, 900, 0, false}, reverted); diff != "" {
			t.Errorf("reverted (-want +got):\n%s", diff)
		}
		if ids := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), l.ID))(t); len(ids) > 0 {
			t.Errorf("additional certificates %v", ids)
		}
		w.quiet("web")
	})
}

func TestEveryGroupSetting(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.Scheduler, "WLC"), with(annotation.ConnectionDrain, "on"),
			with(annotation.ConnectionDrainTimeout, "30"),
			with(annotation.PreserveClientIP, "off"), with(annotation.HealthCheckFlag, "on"), with(annotation.HealthCheckType, "http"),
			with(annotation.HealthCheckConnectPort, "8080"),
			with(annotation.HealthCheckConnectTimeout, "3"), with(annotation.HealthCheckInterval, "7"), with(annotation.HealthyThreshold, "3"),
			with(annotation.UnhealthyThreshold, "4"),
			with(annotation.HealthCheckURI, "/healthz"), with(annotation.HealthCheckDomain, "web.example"),
			with(annotation.HealthCheckMethod, "HEAD"), with(annotation.HealthCheckHTTPCode, "http_2xx,http_3xx"),
			with(annotation.HealthCheckHTTPVersion, "http1.1"))
		show := func() []any {
			g := w.groups("web")[0]
			h := g.HealthCheck
			return []any{*g.Scheduler, *g.ConnectionDrain, *g.DrainTimeout, *g.PreserveClientIP, *h.Enabled, *h.Type, *h.ConnectPort,
				*h.ConnectTimeout, *h.Interval, *h.Healthy, *h.Unhealthy, *h.URL, *h.Domain, *h.Method, h.Codes, *h.Version}
		}
		want := []any{"Wlc", true, 30, false, true, "HTTP", 8080, 3, 7, 3, 4, "/healthz", "web.example", "HEAD", []string{"http_2xx", "http_3xx"},
			"HTTP1.1"}
		if diff := cmp.Diff(want, show()); diff != "" {
			t.Errorf("group (-want +got):\n%s", diff)
		}
		w.quiet("web")
		w.change("web", with(annotation.HealthCheckFlag, "off"), with(annotation.HealthCheckConnectPort, "0"))
		w.converge("web")
		if enabled := show()[4]; enabled != false {
			t.Error("the health check is still on")
		}
		w.change("web", with(annotation.HealthCheckFlag, "on"))
		w.converge("web")
		if got := show(); got[4] != true || got[6] != 0 {
			t.Errorf("group %v: the check is to be on, at the port of the server", got)
		}
		w.quiet("web")
	})
}

func TestHealthCheckKeysNeedTheFlag(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.HealthCheckInterval, "7"))
		mustReport(t, w.newEvents(), "loadbalancer-health-check-interval has no effect without loadbalancer-health-check-flag")
		if *w.groups("web")[0].HealthCheck.Interval == 7 {
			t.Error("the interval was set")
		}
	})
}

func TestSourceRanges(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ranges := func(blocks ...string) func(*corev1.Service) {
			return func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = blocks }
		}
		w.serve(1, testkube.TCP(80), ranges("192.0.2.7/24", "192.0.2.0/24", "2001:db8::/32"), with(annotation.IPVersion, "DualStack"))
		calls := writes(w.calls())
		if want := []string{"CreateSecurityGroup", "AuthorizeSecurityGroup", "CreateLoadBalancer"}; !slices.Equal(calls[:3], want) {
			t.Errorf("writes %v begin with others than %v: the load balancer would be open", calls, want)
		}
		rules := func() []string {
			lb := w.balancer("web")
			if len(lb.SecurityGroups) == 0 {
				return nil
			}
			var shown []string
			for _, r := range testkit.Must(w.account.Client.DescribeSecurityGroup(t.Context(), lb.SecurityGroups[0]))(t).Rules {
				text := "accept "
				if r.Drop {
					text = "drop "
				}
				shown = append(shown, text+r.CIDR)
			}
			slices.Sort(shown)
			return shown
		}
		if got, want := rules(), []string{"accept 192.0.2.0/24", "accept 2001:db8::/32", "drop 0.0.0.0/0", "drop ::/0"}; !slices.Equal(got,
			want) {
			t.Errorf("rules %v, want %v", got, want)
		}
		w.quiet("web")
		w.change("web", ranges("198.51.100.0/24"))
		w.converge("web")
		if got, want := rules(), []string{"accept 198.51.100.0/24", "drop 0.0.0.0/0", "drop ::/0"}; !slices.Equal(got, want) {
			t.Errorf("rules %v, want %v", got, want)
		}
		w.quiet("web")
		w.change("web", ranges())
		w.converge("web")
		groups := testkit.Must(w.account.Client.DescribeSecurityGroups(t.Context(), *w.owner("web")))(t)
		if len(w.balancer("web").SecurityGroups)+len(groups) > 0 {
			t.Errorf("security groups are left: %v", groups)
		}
		w.quiet("web")
	})
}

func TestSecurityGroups(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		group := func(token string) string {
			return testkit.Must(w.account.Client.CreateSecurityGroup(t.Context(),
				alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, token))(t)
		}
		a, b := group("a"), group("b")
		w.serve(1, testkube.TCP(80), with(annotation.SecurityGroupIDs, a))
		want := func(ids ...string) {
			t.Helper()
			if got := w.balancer("web").SecurityGroups; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(ids))) {
				t.Errorf("security groups %v, want %v", got, ids)
			}
			w.quiet("web")
		}
		want(a)
		w.change("web", with(annotation.SecurityGroupIDs, a+", "+b))
		w.converge("web")
		want(a, b)
		w.change("web", with(annotation.SecurityGroupIDs, b))
		w.converge("web")
		want(b)
		w.change("web", without(annotation.SecurityGroupIDs))
		w.converge("web")
		want()
	})
}

func TestZonesAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		w.change("web", with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-a"))
		w.converge("web")
		mustReport(t, w.newEvents(), "a load balancer keeps at least 2 zones")
		if zones := w.balancer("web").Zones; len(zones) != 2 {
			t.Errorf("zones %v", zones)
		}
		w.change("web", with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-b,cn-hangzhou-b:vsw-b"))
		w.converge("web")
		mustReport(t, w.newEvents(), "of an existing zone cannot change (cn-hangzhou-a)")
		if calls := writes(w.calls()); slices.Contains(calls, "UpdateLoadBalancerZones") {
			t.Errorf("writes %v", calls)
		}
	})
}

func TestPodsAreServers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		port := testkube.Port(80, corev1.ProtocolTCP)
		port2 := testkube.Port(81, corev1.ProtocolTCP)
		port2.TargetPort = port.TargetPort
		address := func(node string) string { return w.address(t, node) }
		w.addNodes("n2", "n3")
		w.putSlice(slice("web", port, port2, address("n1")+"@n1", address("n2")+"@n2"))
		w.put(newService("web", testkube.Annotation(annotation.BackendType, "eni"), func(svc *corev1.Service) {
			svc.Spec.Ports = []corev1.ServicePort{port, port2}
		}))
		w.converge("web")
		if groups := w.groups("web"); len(groups) != 1 || groups[0].Name != "k8s.8080.TCP.web.default.c1" {
			t.Errorf("two ports with one target port have the groups %v", groups)
		}
		want := address("n1") + ":8080=100 " + address("n2") + ":8080=100"
		if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, []string{"TCP:80 " + want, "TCP:81 " + want}) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
	})
}

// slice is an EndpointSlice of two ports.
func slice(name string, port, other corev1.ServicePort, items ...string) *discoveryv1.EndpointSlice {
	s := testkube.EndpointSlice(name, port, items...)
	s.Ports = append(s.Ports, testkube.EndpointSlice(name, other).Ports...)
	return s
}

// address is that of the network interface of a node.
func (w *world) address(tb testing.TB, node string) string {
	tb.Helper()
	found := testkit.Must(w.account.Client.DescribeInstances(tb.Context(),
		alicloud.InstanceQuery{IDs: []string{testkube.InstanceOf(node)}}))(tb)
	return found[0].PrivateIPs[0]
}

func TestPortRange(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		port := testkube.Port(80, corev1.ProtocolTCP)
		w.addNodes("n1")
		w.putSlice(testkube.EndpointSlice("web", port, w.address(t, "n1")+"@n1"))
		w.put(newService("web", testkube.TCP(80), testkube.Annotation(annotation.BackendType, "eni"),
			with(annotation.ListenerPortRange, "80-400:80")))
		w.converge("web")
		lb := w.balancer("web")
		if got, want := w.listeners(lb.ID), []string{"TCP:80-400 " + w.address(t, "n1") + ":0=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
		w.change("web", without(annotation.ListenerPortRange))
		w.converge("web")
		if got, want := w.listeners(lb.ID), []string{"TCP:80 " + w.address(t, "n1") + ":8080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
	})
}

// TestOneBadServer: one instance that does not exist is left out, and keeps no other from joining.
func TestOneBadServer(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2", "n3")
		w.account.Admin("DELETE", "/_emulator/instances/i-n2", "")
		w.put(newService("web", testkube.TCP(80)))
		_ = w.try("web")
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n3:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		mustReport(t, w.newEvents(), "left out i-n2")
	})
}

// TestTCPSSLGroupsFallBackToTCP: documents differ about the protocol of a group behind a TCPSSL listener.
func TestTCPSSLGroupsFallBackToTCP(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.account.Change(func(s *emulatorSettings) { s.NLBGroupsRefuseTCPSSL = true })
		w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"))
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCPSSL:443 i-n1:30443=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
	})
}

func TestLongGroupName(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		name := "web-" + strings.Repeat("x", 59)
		w.config.ClusterID = strings.Repeat("c", 33)
		w.restart()
		w.addNodes("n1")
		svc := newService(name, testkube.TCP(80))
		svc.Namespace = "default"
		svc.UID = "0f5e8a1c-web"
		w.put(svc)
		w.converge(name)
		groups := w.groups("web")
		if len(groups) != 1 || len(groups[0].Name) > 128 {
			t.Fatalf("groups %v", groups)
		}
		w.quiet(name)
	})
}

// TestWhatHasNoEffect: annotations that ask for something that the rest of the Service rules out.
func TestWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	for says, change := range map[string][]func(*corev1.Service){
		"loadbalancer-default-weight has no effect with externalTrafficPolicy Local": edits(testkube.LocalTraffic,
			with(annotation.DefaultWeight, "7")),
		"loadbalancer-additional-cert-ids takes the others": edits(with(annotation.ProtocolPort, "tcpssl:80"),
			with(annotation.CertID, "cert-1,cert-2")),
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, append(change, testkube.TCP(80))...)
				mustReport(t, w.newEvents(), says)
			})
		})
	}
}
