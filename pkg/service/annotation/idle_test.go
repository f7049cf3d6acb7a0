package annotation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestAnnotationsThatActOnNoListener: what asks for something that no listener of the Service has is reported, with the protocols that have
// it. Annotations of health checks are not: frameworks put all of them on every Service.
func TestAnnotationsThatActOnNoListener(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		parse    func(*corev1.Service) Params
		set      map[Suffix]string
		protocol string
		want     []string
	}{
		{"of TCP on HTTPS", paramsOfCLB, map[Suffix]string{EstablishedTimeout: "100", ProxyProtocol: "on"}, "https", []string{
			EstablishedTimeout.Key() + " has no effect: no port is served by tcp",
			ProxyProtocol.Key() + " has no effect: no port is served by tcp or udp",
		}},
		{"of HTTP on TCP", paramsOfCLB, map[Suffix]string{IdleTimeout: "30", CertID: "cert-1", HTTP2Enabled: "off"}, "tcp", []string{
			IdleTimeout.Key() + " has no effect: no port is served by http or https", CertID.Key() + " has no effect: no port is served by https",
			HTTP2Enabled.Key() + " has no effect: no port is served by https",
		}},
		{"of TLS on UDP", paramsOfNLB, map[Suffix]string{CertID: "cert-1", ALPN: "on", ALPNPolicy: "HTTP2Only"}, "udp", []string{
			CertID.Key() + " has no effect: no port is served by tcpssl", ALPN.Key() + " has no effect: no port is served by tcpssl",
			ALPNPolicy.Key() + " has no effect: no port is served by tcpssl",
		}},
		{"health checks", paramsOfCLB, map[Suffix]string{HealthCheckFlag: "on", HealthCheckType: "http"}, "udp", nil},
		{"all act", paramsOfCLB, map[Suffix]string{EstablishedTimeout: "100", Scheduler: "wlc"}, "tcp", nil},
		{"nothing is served", paramsOfCLB, map[Suffix]string{EstablishedTimeout: "100"}, "", nil},
	} {
		svc := &corev1.Service{}
		svc.Annotations = map[string]string{}
		for suffix, value := range test.set {
			svc.Annotations[suffix.Key()] = value
		}
		served := sets.New[string]()
		if test.protocol != "" {
			served.Insert(test.protocol)
		}
		var got []string
		for _, problem := range test.parse(svc).Idle(served) {
			got = append(got, problem.Message)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func paramsOfCLB(svc *corev1.Service) Params {
	params, _ := Of(svc)
	return params
}

func paramsOfNLB(svc *corev1.Service) Params {
	params, _ := OfNLB(svc)
	return params
}
