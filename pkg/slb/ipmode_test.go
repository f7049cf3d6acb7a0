package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestIPMode: kube-proxy answers itself for an address with the mode VIP, so that pods do not get what the CLB adds. The annotation, or the
// cloud-config for Services without it, says otherwise; auto finds the listeners that add something.
func TestIPMode(t *testing.T) {
	t.Parallel()
	with := func(pairs ...string) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			for i := 0; i < len(pairs); i += 2 {
				annotate(svc, annotation.Suffix(pairs[i]), pairs[i+1])
			}
		}
	}
	mode, protocol := string(annotation.IPMode), string(annotation.ProtocolPort)
	for _, test := range []struct {
		name, config string
		service      func(*corev1.Service)
		want         string
	}{
		{"nobody says", "", with(), ""},
		{"annotation", "", with(mode, "proxy"), "Proxy"},
		{"cloud-config", "Proxy", with(), "Proxy"},
		{"annotation before the cloud-config", "Proxy", with(mode, "VIP"), "VIP"},
		{"auto, TCP", "auto", with(), "VIP"},
		{"auto, HTTP", "auto", with(protocol, "http:80"), "Proxy"},
		{"auto, PROXY protocol", "", with(mode, "auto", string(annotation.ProxyProtocol), "on"), "Proxy"},
		{"a name has no mode", "Proxy", with(string(annotation.Hostname), "web.example.com"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.config.IPMode = test.config
			w.restart()
			svc := testService("web", 80)
			test.service(svc)
			w.put(svc)
			shown := func() string {
				w.mustPass("web")
				ingress := w.get("web").Status.LoadBalancer.Ingress
				if len(ingress) != 1 {
					t.Fatalf("ingress %v, want one", ingress)
				}
				if ingress[0].IPMode == nil {
					return ""
				}
				return string(*ingress[0].IPMode)
			}
			if got := shown(); got != test.want {
				t.Errorf("mode %q, want %q", got, test.want)
			}
			w.config.IPMode = ""
			w.restart()
			w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.IPMode)) })
			if got := shown(); got == "Proxy" {
				t.Error("the mode stays although nobody asks for it any more")
			}
		})
	}
}
