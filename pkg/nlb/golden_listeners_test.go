package nlb

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

const (
	webOn80    = "TCP:80 i-n1:30080=100"
	secureOn80 = "TCPSSL:80 i-n1:30080=100"
)

func TestGoldenListeners(t *testing.T) {
	t.Parallel()
	secure := edits(with(annotation.ProtocolPort, "tcpssl:80"), with(annotation.CertID, "cert-1"))
	runGolden(t, []life{
		{name: "TCP to TCPSSL on one port: delete, await, create", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{serves: []string{webOn80}},
			{edit: secure,
				writes: []string{"CreateServerGroup", "AddServersToServerGroup", "CreateListener=Conflict.Port", "DeleteListener", "CreateListener",
					"DeleteServerGroup"},
				order: []string{"AddServersToServerGroup", "DeleteListener", "CreateListener"}, serves: []string{secureOn80}},
			{edit: edits(without(annotation.ProtocolPort), without(annotation.CertID)), serves: []string{webOn80}},
		}},
		{name: "swap of a UDP and a TCP port", nodes: 1, service: edits(ports(tcpPort(80), udpPort(90))), changes: []change{
			{serves: []string{webOn80, "UDP:90 i-n1:30090=100"}},
			{edit: edits(ports(udpPort(80), tcpPort(90))), serves: []string{"TCP:90 i-n1:30090=100", "UDP:80 i-n1:30080=100"}},
		}},
		{name: "port 80 to 81, no gap for others", nodes: 1, service: edits(ports(tcpPort(80), tcpPort(443))), changes: []change{
			{},
			{edit: edits(ports(tcpPort(81), tcpPort(443))),
				writes: []string{"CreateServerGroup", "DeleteListener", "DeleteServerGroup", "AddServersToServerGroup", "CreateListener"},
				serves: []string{"TCP:443 i-n1:30443=100", "TCP:81 i-n1:30081=100"}},
		}},
		{name: "TCPSSL without certificate: others are served", nodes: 1,
			service: edits(testkube.TCP(80, 443), with(annotation.ProtocolPort, "tcpssl:443")), changes: []change{
				{serves: []string{webOn80}, says: []string{"port 443 is not served: a TCPSSL listener needs loadbalancer-cert-id"}},
			}},
		{name: "certificate rotation is one write", nodes: 1, service: append(edits(testkube.TCP(80)), secure...), changes: []change{
			{serves: []string{secureOn80}},
			{edit: edits(with(annotation.CertID, "cert-2")), writes: []string{"UpdateListenerAttribute"}},
		}},
		{name: "ALPN without policy", nodes: 1, service: append(edits(testkube.TCP(80), with(annotation.ALPN, "on")), secure...),
			changes: []change{
				{says: []string{"loadbalancer-alpn: \"on\" needs loadbalancer-alpn-policy"}},
			}, restless: true},
		{name: "unknown cipher policy", nodes: 1,
			service: append(edits(testkube.TCP(80, 90), with(annotation.TLSCipherPolicy, "tls-unknown")), secure...), restless: true,
			changes: []change{
				{fails: true, says: []string{"create listener tcp:80"}, serves: []string{"TCP:90 i-n1:30090=100"}},
			}},
		{name: "idle timeout of 900 with a UDP port", nodes: 1,
			service: edits(ports(tcpPort(80), udpPort(53)), with(annotation.IdleTimeout, "900")), changes: []change{
				{serves: []string{webOn80, "UDP:53 i-n1:30053=100"}},
			}},
		{name: "idle timeout of 60 with UDP ports only", nodes: 1,
			service: edits(ports(udpPort(53), udpPort(54)), with(annotation.IdleTimeout, "60")), changes: []change{
				{says: []string{"loadbalancer-idle-timeout: 60 has no effect on a UDP listener, which takes at most 20"},
					serves: []string{"UDP:53 i-n1:30053=100", "UDP:54 i-n1:30054=100"}},
			}},
		{name: "settings of PROXY protocol without it", nodes: 1, service: edits(testkube.TCP(80), with(annotation.PPV2EpID, "on")),
			changes: []change{
				{writes: create, says: []string{"loadbalancer-ppv2-pvl-ep-id-enabled has no effect without loadbalancer-proxy-protocol: \"on\""}},
			}},
		{name: "range in ECS mode", nodes: 1, service: edits(testkube.TCP(80), with(annotation.ListenerPortRange, "80-400:80")), changes: []change{
			{says: []string{"a range of ports needs"}, serves: []string{webOn80}},
		}},
		{name: "protocol of an unknown port", nodes: 1, service: edits(testkube.TCP(80), with(annotation.ProtocolPort, "tcp:80,tcp:90")),
			changes: []change{
				{says: []string{"tcp:90 has no effect, because the Service has no port 90"}, serves: []string{webOn80}},
			}},
		{name: "stopped listener is started", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{do: func(w *world) {
				l := w.listener(w.balancer("web").ID, 0)
				w.account.Raw(api.VersionNLB, "StopListener", map[string]string{"ListenerId": l.ID}, nil)
				w.later(5 * settle)
				testkit.Check(w.t, w.Invalidate(w.t.Context(), w.get("web"), "drift"))
			}, writes: []string{"StartListener"}, check: func(t *testing.T, w *world) {
				t.Helper()
				w.later(5 * settle)
				if l := w.listener(w.balancer("web").ID, 0); l.Status != alicloud.NLBListenerRunning {
					t.Errorf("the listener is %s", l.Status)
				}
			}},
		}},
	})
}

// TestGoldenPortRanges: ranges of TCP and UDP may overlap, a range and a port of one transport may not; the servers of a range have no
// port of their own.
func TestGoldenPortRanges(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		web, secure, dns := tcpPort(80), tcpPort(443), udpPort(53)
		s := testkube.EndpointSlice("web", web, w.address(t, "n1")+"@n1")
		for _, port := range []corev1.ServicePort{secure, dns} {
			s.Ports = append(s.Ports, testkube.EndpointSlice("web", port).Ports...)
		}
		w.putSlice(s)
		w.put(newService("web", eni, ports(web, secure, dns), with(annotation.ListenerPortRange, "80-400:80,50-500:53")))
		w.converge("web")
		a := w.address(t, "n1")
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:443 " + a + ":8443=100", "TCP:80-400 " + a + ":0=100",
			"UDP:50-500 " + a + ":0=100"}; !slices.Equal(ends(got), ends(want)) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
		w.newEvents()
		w.change("web", with(annotation.ListenerPortRange, "80-500:80,50-500:53"))
		w.converge("web")
		mustReport(t, w.newEvents(), "overlap")
		w.change("web", without(annotation.ListenerPortRange))
		w.converge("web")
		if got := w.listeners(w.balancer("web").ID); len(got) != 3 {
			t.Errorf("listeners %v", got)
		}
		w.quiet("web")
	})
}

// ends leaves of listeners only what they listen on: the target ports of named ports are the fixture's.
func ends(listeners []string) []string {
	var found []string
	for _, l := range listeners {
		for i := range l {
			if l[i] == ' ' {
				found = append(found, l[:i])
				break
			}
		}
	}
	return found
}

// TestGoldenHumansCertificateStays: what somebody added to a listener by hand is not removed.
func TestGoldenHumansCertificateStays(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"),
			with(annotation.AdditionalCertIDs, "cert-2"))
		l := w.listener(w.balancer("web").ID, 0)
		testkit.Must(w.account.Client.AddCertificates(t.Context(), l.ID, []string{"cert-3"}))(t)
		w.later(5 * settle)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.change("web", without(annotation.AdditionalCertIDs))
		w.converge("web")
		if got := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), l.ID))(t); !slices.Equal(got, []string{"cert-3"}) {
			t.Errorf("additional certificates %v", got)
		}
		w.quiet("web")
	})
}
