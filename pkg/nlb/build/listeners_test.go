package build_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// ours is a listener of the Service as it is there.
func ours(port int, protocol, group string) func(*model.Model) {
	return func(m *model.Model) {
		l := model.Listener{NLBListener: alicloud.NLBListener{ID: "lsn-1", Port: port, Protocol: protocol, Status: alicloud.NLBListenerRunning}}
		text := mark(l.Ports() + "." + protocol)
		l.Description, l.ServerGroupID = &text, &group
		m.Listeners = append(m.Listeners, l)
	}
}

func TestListeners(t *testing.T) {
	t.Parallel()
	const tcp = "TCP 80 -> 30080.TCP"
	tls := func(pairs ...string) func(*fixture) {
		return set(append([]string{"protocol-port", "tcpssl:80", "cert-id", "cert-1"}, pairs...)...)
	}
	checkRows(t, listenerLines, []row{
		{"plain", plain, []string{tcp}, nil},
		{"TCP and UDP on one port", port(80, corev1.ProtocolUDP), []string{tcp, "UDP 80 -> 30080.UDP"}, nil},
		{"sorted by port", all(port(443, corev1.ProtocolTCP), port(53, corev1.ProtocolUDP)), []string{"UDP 53 -> 30053.UDP", tcp,
			"TCP 443 -> 30443.TCP"}, nil},
		{"SCTP is not served, the others are", port(90, corev1.ProtocolSCTP), []string{tcp}, []string{
			`FeatureNotSupported: spec.ports: protocol "SCTP" of port 90 is not accepted; accepted: TCP, UDP`,
		}},
		{"without a node port the listener stays as it is", func(f *fixture) { f.svc.Spec.Ports[0].NodePort = 0 },
			[]string{"TCP 80 -> 0.TCP blocked: SkipSyncBackends"}, []string{
				"FeatureNotSupported: port 80 has no node port (allocateLoadBalancerNodePorts is false); that needs the annotation " +
					"service.beta.kubernetes.io/backend-type: eni",
			}},
		{"pods need no node port", all(pods, func(f *fixture) { f.svc.Spec.Ports[0].NodePort = 0 }), []string{"TCP 80 -> 8080.TCP"}, nil},

		{"connections per second", set("cps", "5"), []string{tcp + " Cps=5"}, nil},
		{"no connections per second any more", removed("cps"), []string{tcp + " Cps=0"}, nil},
		{"a value that is not accepted keeps the listener as it is", set("cps", "many"), []string{tcp + " blocked: InvalidAnnotation"}, []string{
			`InvalidAnnotation: ` + key + `cps: "many" is not accepted; accepted: 0 to 1000000`,
		}},
		{"idle timeout", set("idle-timeout", "60"), []string{tcp + " IdleTimeout=60"}, nil},
		{"idle timeout that UDP takes", all(udp, set("idle-timeout", "15")), []string{"UDP 80 -> 30080.UDP IdleTimeout=15"}, nil},
		{"idle timeout of TCP beside UDP", all(port(53, corev1.ProtocolUDP), set("idle-timeout", "60")), []string{"UDP 53 -> 30053.UDP", tcp +
			" IdleTimeout=60"}, nil},
		{"idle timeout too long for UDP", all(udp, set("idle-timeout", "60")), []string{"UDP 80 -> 30080.UDP"}, []string{
			"AnnotationNoEffect: " + key + "idle-timeout: 60 has no effect on a UDP listener, which takes at most 20",
		}},
		{"idle timeout removed", all(port(53, corev1.ProtocolUDP), removed("idle-timeout")), []string{"UDP 53 -> 30053.UDP IdleTimeout=20", tcp +
			" IdleTimeout=900"}, nil},
		{"proxy protocol", set("proxy-protocol", "on"), []string{tcp + " ProxyProtocol=true"}, nil},
		{"proxy protocol with what is in the header", set("proxy-protocol", "on", "ppv2-pvl-ep-id-enabled", "on", "ppv2-pvl-vpc-id-enabled",
			"off"),
			[]string{tcp + " ProxyProtocol=true ProxyProtocolV2=map[PrivateLinkEpID:true]"}, nil},
		{"a header without the protocol", set("ppv2-pvl-eps-id-enabled", "on"), []string{tcp}, []string{
			"AnnotationNoEffect: " + key + `ppv2-pvl-eps-id-enabled has no effect without ` + key + `proxy-protocol: "on"`,
		}},

		{"TLS", tls(), []string{"TCPSSL 80 -> 30080.TCPSSL CertificateIDs=[cert-1]"}, nil},
		{"TLS without a certificate", set("protocol-port", "tcpssl:80"), []string{"TCPSSL 80 -> 30080.TCPSSL blocked: InvalidAnnotation"},
			[]string{
				"InvalidAnnotation: " + key + "protocol-port: port 80 is not served: a TCPSSL listener needs " + key + "cert-id",
			}},
		{"settings of TLS", tls("cacert", "on", "cacert-id", "ca-1", "tls-cipher-policy", "tls_cipher_policy_1_2", "alpn", "on", "alpn-policy",
			"HTTP2Only",
			"additional-cert-ids", "cert-2,cert-3"),
			[]string{"TCPSSL 80 -> 30080.TCPSSL ALPNEnabled=true ALPNPolicy=HTTP2Only CACertificateIDs=[ca-1] CAEnabled=true " +
				"CertificateIDs=[cert-1] SecurityPolicyID=tls_cipher_policy_1_2 Certificates=[cert-2 cert-3]"}, nil},
		{"settings of TLS switched off", tls("cacert", "off", "alpn", "off"),
			[]string{"TCPSSL 80 -> 30080.TCPSSL ALPNEnabled=false CAEnabled=false CertificateIDs=[cert-1]"}, nil},
		{"settings of TLS without TLS", set("cert-id", "cert-1", "tls-cipher-policy", "tls_cipher_policy_1_2"), []string{tcp}, []string{
			"AnnotationNoEffect: " + key + "cert-id has no effect: no port is served by tcpssl",
			"AnnotationNoEffect: " + key + "tls-cipher-policy has no effect: no port is served by tcpssl",
		}},
		{"certificates that were removed", all(tls(), func(f *fixture) { f.removeCertificates = []string{"cert-2"} }),
			[]string{"TCPSSL 80 -> 30080.TCPSSL CertificateIDs=[cert-1] RemoveCertificates=[cert-2]"}, nil},
	})
}

func TestProtocolOfListeners(t *testing.T) {
	t.Parallel()
	const tcp, cert = "TCP 80 -> 30080.TCP", " CertificateIDs=[cert-1]"
	refused := `InvalidAnnotation: ` + key +
		`protocol-port: "quic:80" is not accepted; accepted: a comma-separated list without duplicates, for example tcpssl:443`
	checkRows(t, listenerLines, []row{
		{"TCP as it is", set("protocol-port", "tcp:80"), []string{tcp}, nil},
		{"capitals", set("protocol-port", "TCP:80"), []string{tcp}, nil},
		{"one protocol for each transport of the port", all(port(80, corev1.ProtocolUDP), set("protocol-port", "tcpssl:80,udp:80", "cert-id",
			"cert-1")),
			[]string{"TCPSSL 80 -> 30080.TCPSSL" + cert, "UDP 80 -> 30080.UDP"}, nil},
		{"TLS of a UDP port", all(udp, set("protocol-port", "tcpssl:80", "cert-id", "cert-1")), []string{"TCPSSL 80 -> 30080.TCPSSL" + cert},
			[]string{
				"AnnotationNoEffect: " + key +
					"protocol-port: tcpssl:80 makes a listener that nodes do not answer: the Service declares port 80 as UDP",
			}},
		{"UDP of a TCP port", set("protocol-port", "udp:80"), []string{"UDP 80 -> 30080.UDP"}, []string{
			"AnnotationNoEffect: " + key + "protocol-port: udp:80 makes a listener that nodes do not answer: the Service declares port 80 as TCP",
		}},
		{"UDP of a TCP port of pods", all(pods, set("protocol-port", "udp:80")), []string{"UDP 80 -> 8080.UDP"}, nil},
		{"UDP of a port of both", all(port(80, corev1.ProtocolUDP), set("protocol-port", "udp:80")), []string{tcp, "UDP 80 -> 30080.UDP"}, nil},
		{"not accepted, with a listener of another transport", all(set("protocol-port", "quic:80"), existing(ours(80, "UDP", "sgp-1"))),
			[]string{"UDP 80 -> 30080.UDP blocked: InvalidAnnotation"}, []string{refused}},
		{"a port that the Service does not have", set("protocol-port", "tcp:81"), []string{tcp}, []string{
			"AnnotationNoEffect: " + key + "protocol-port: tcp:81 has no effect, because the Service has no port 81",
		}},
		{"two protocols for a port", set("protocol-port", "tcp:80,tcpssl:80", "cert-id", "cert-1"), []string{tcp}, []string{
			"InvalidAnnotation: " + key + "protocol-port: port 80 is specified twice",
		}},
		{"two protocols for a port whose listener is there", all(set("protocol-port", "tcp:80,tcpssl:80", "cert-id", "cert-1"), existing(ours(80,
			"TCPSSL", "sgp-1"))),
			[]string{"TCPSSL 80 -> 30080.TCPSSL" + cert}, []string{"InvalidAnnotation: " + key + "protocol-port: port 80 is specified twice"}},
		{"not accepted, no listener yet", set("protocol-port", "quic:80"), []string{tcp + " blocked: InvalidAnnotation"}, []string{refused}},
		{"not accepted, with a listener of TLS", all(set("protocol-port", "quic:80", "cert-id", "cert-1"), existing(ours(80, "TCPSSL", "sgp-1"))),
			[]string{"TCPSSL 80 -> 30080.TCPSSL" + cert + " blocked: InvalidAnnotation"}, []string{refused}},
	})
}

func TestListenersOnRangesOfPorts(t *testing.T) {
	t.Parallel()
	const ranged = "TCP 1000_2000 -> 1000_2000.TCP"
	ports := func(value string) func(*fixture) { return all(pods, set("listener-port-range", value)) }
	checkRows(t, listenerLines, []row{
		{"with pods", ports("1000-2000:80"), []string{ranged}, nil},
		{"with nodes", set("listener-port-range", "1000-2000:80"), []string{"TCP 80 -> 30080.TCP"}, []string{
			`InvalidAnnotation: ` + key +
				`listener-port-range: "1000-2000:80" is not accepted: a range of ports needs service.beta.kubernetes.io/backend-type: eni`,
		}},
		{"with a named target port", all(ports("1000-2000:80"), func(f *fixture) { f.svc.Spec.Ports[0].TargetPort = intstr.FromString("http") }),
			[]string{"TCP 80 -> http.TCP"}, []string{
				`InvalidAnnotation: ` + key +
					`listener-port-range: "1000-2000:80" is not accepted: the target port must be a number, for the health check`,
			}},
		{"of a port that the Service does not have", ports("1000-2000:81"), []string{"TCP 80 -> 8080.TCP"}, []string{
			"AnnotationNoEffect: " + key + "listener-port-range: 1000-2000:81 has no effect, because the Service has no port 81",
		}},
		{"over another port", all(ports("1000-2000:80"), port(1500, corev1.ProtocolTCP)), []string{ranged + " blocked: InvalidAnnotation",
			"TCP 1500 -> 9500.TCP"}, []string{
			"InvalidAnnotation: " + key + "listener-port-range: the listeners tcp:1000_2000 and tcp:1500 overlap",
		}},
		{"over a port of UDP", all(ports("1000-2000:80"), port(1500, corev1.ProtocolUDP)), []string{ranged, "UDP 1500 -> 9500.UDP"}, nil},
		{"over another range", all(ports("1000-2000:80,2000-3000:81"), port(81, corev1.ProtocolTCP)),
			[]string{ranged + " blocked: InvalidAnnotation", "TCP 2000_3000 -> 2000_3000.TCP blocked: InvalidAnnotation"},
			[]string{"InvalidAnnotation: " + key + "listener-port-range: the listeners tcp:1000_2000 and tcp:2000_3000 overlap"}},
		{"from large to small", ports("2000-1000:80"), []string{"TCP 80 -> 8080.TCP blocked: InvalidAnnotation"}, []string{
			"InvalidAnnotation: " + key +
				"listener-port-range: a smaller and a larger port, 1 to 65535; without the annotation the listener has one port",
		}},
	})
}

// TestRangesInDoubtStay: while nobody knows which ranges are asked for, none that is there is removed.
func TestRangesInDoubtStay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value string
		holds bool
	}{
		"accepted": {"1000-2000:80", false}, "not accepted": {"2000-1000:80", true}, "overlapping": {"1000-2000:80,1500-3000:81", true},
	} {
		f := newFixture(80, 81)
		all(pods, set("listener-port-range", test.value))(f)
		if built, _ := f.build(); built.HoldRanges != test.holds {
			t.Errorf("%s: holds ranges: %v, want %v", name, built.HoldRanges, test.holds)
		}
	}
}

func TestListenersMarkWhoseTheyAre(t *testing.T) {
	t.Parallel()
	f := newFixture(80)
	all(port(53, corev1.ProtocolUDP), set("protocol-port", "tcpssl:80", "cert-id", "cert-1"))(f)
	built, _ := f.build()
	for i, want := range []string{"k8s.53.UDP.web.default.c1", "k8s.80.TCPSSL.web.default.c1"} {
		if got := model.Text(built.Listeners[i].Description); got != want {
			t.Errorf("description %q, want %q", got, want)
		}
	}
}
