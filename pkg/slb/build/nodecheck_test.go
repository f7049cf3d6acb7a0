package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestNodesAreCheckedAtKubeProxy: with the annotation, a node counts as healthy while kube-proxy says that it serves the Service there. The
// port of a Service with the policy Local is known once the API server has allocated it.
func TestNodesAreCheckedAtKubeProxy(t *testing.T) {
	t.Parallel()
	node := alicloud.Attributes{"HealthCheckType": "http", "HealthCheckURI": "/healthz", "HealthCheckConnectPort": "10256"}
	local := func(port int32) func(*corev1.Service) {
		return func(svc *corev1.Service) { testkube.LocalTraffic(svc); svc.Spec.HealthCheckNodePort = port }
	}
	with := func(suffix annotation.Suffix, value string) func(*corev1.Service) {
		return func(svc *corev1.Service) { annotate(svc, suffix, value) }
	}
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		want   alicloud.Attributes
	}{
		{"Cluster", func(*corev1.Service) {}, node},
		{"Local", local(31000), alicloud.Attributes{"HealthCheckType": "http", "HealthCheckURI": "/healthz", "HealthCheckConnectPort": "31000"}},
		{"Local without a port yet", local(0), alicloud.Attributes{}},
		{"pods", eni, alicloud.Attributes{}},
		{"at the port of the Service", with(annotation.HealthCheck, "port"), alicloud.Attributes{}},
		{"another path", with(annotation.HealthCheckURI, "/ok"),
			alicloud.Attributes{"HealthCheckType": "http", "HealthCheckURI": "/ok", "HealthCheckConnectPort": "10256"}},
		{"a check of another kind", with(annotation.HealthCheckType, "tcp"), alicloud.Attributes{"HealthCheckType": "tcp"}},
		{"HTTP", with(annotation.ProtocolPort, "http:80"),
			alicloud.Attributes{"HealthCheck": "on", "HealthCheckURI": "/healthz", "HealthCheckConnectPort": "10256"}},
		{"UDP", func(svc *corev1.Service) { svc.Spec.Ports[0].Protocol = corev1.ProtocolUDP }, alicloud.Attributes{}},
	} {
		c := newFixture(80)
		annotate(c.svc, annotation.HealthCheck, "node")
		test.change(c.svc)
		built, _ := c.build()
		if diff := cmp.Diff(test.want, built.Listeners[0].Attributes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
