package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
)

func TestIneffective(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		annotations map[annotation.Suffix]string
		want        []string
	}{
		{"none", nil, nil},
		{"acts on the port", map[annotation.Suffix]string{annotation.HealthyThreshold: "3", annotation.EstablishedTimeout: "10"}, nil},
		{"of other protocols", map[annotation.Suffix]string{annotation.HealthCheckFlag: "on", annotation.HTTP2Enabled: "on"}, []string{
			"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-flag has no effect: no port is served by http or https",
		}},
		{"timeout at the interval", map[annotation.Suffix]string{annotation.HealthCheckConnectTimeout: "7", annotation.HealthCheckInterval: "7"},
			nil},
		{"timeout below the interval", map[annotation.Suffix]string{annotation.HealthCheckConnectTimeout: "1"}, []string{
			"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-connect-timeout: 1 s is below service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-interval: 2 s, so the cloud waits 2 s",
		}},
		{"default below the interval", map[annotation.Suffix]string{annotation.HealthCheckInterval: "9", annotation.ProtocolPort: "http:80"},
			[]string{
				"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-timeout: 5 s is below service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-interval: 9 s, so the cloud waits 9 s",
			}},
		{"something invalid", map[annotation.Suffix]string{annotation.HealthCheckFlag: "on", annotation.HealthCheckInterval: "x"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80)
			for suffix, value := range test.annotations {
				annotate(c.svc, suffix, value)
			}
			model, _ := c.build()
			params, _ := annotation.Parse(c.svc.Annotations)
			if diff := cmp.Diff(test.want, build.Ineffective(params, model)); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
		})
	}
}
