package build_test

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// TestNodesAreCheckedAtKubeProxy: with the annotation, a node counts as healthy while kube-proxy says that it serves the Service there. The
// port of a Service with the policy Local is known once the API server has allocated it.
func TestNodesAreCheckedAtKubeProxy(t *testing.T) {
	t.Parallel()
	checkLines := func(m *model.Model) []string { return fields(m.Groups[0].HealthCheck) }
	node := func(pairs ...string) func(*fixture) {
		return set(append([]string{"health-check", "node"}, pairs...)...)
	}
	local := func(port int32) func(*fixture) {
		return all(func(f *fixture) { testkube.LocalTraffic(f.svc); f.svc.Spec.HealthCheckNodePort = port }, endpoints("10.9.0.1@a"))
	}
	at := func(port string) []string {
		return []string{"ConnectPort=" + port, "Enabled=true", "Type=HTTP", "URL=/healthz"}
	}
	checkRows(t, checkLines, []row{
		{"Cluster", node(), at("10256"), nil},
		{"UDP", all(udp, node()), at("10256"), nil},
		{"Local", all(node(), local(31000)), at("31000"), nil},
		{"Local without a port yet", all(node(), local(0)), nil, nil},
		{"pods", all(pods, node()), nil,
			[]string{"AnnotationNoEffect: " + key +
				"health-check: node has no effect with service.beta.kubernetes.io/backend-type: eni: it is about nodes"}},
		{"at the port of the Service", set("health-check", "port"), nil, nil},
		{"another path and interval", node("health-check-flag", "on", "health-check-uri", "/ok", "health-check-interval", "7"),
			[]string{"ConnectPort=10256", "Enabled=true", "Interval=7", "Type=HTTP", "URL=/ok"}, nil},
		{"a check of another kind", node("health-check-flag", "on", "health-check-type", "tcp"), []string{"Enabled=true", "Type=TCP"}, nil},
		{"switched off", node("health-check-flag", "off"), []string{"Enabled=false"}, nil},
		{"no longer", removed("health-check"), []string{"ConnectPort=0", "Enabled=true", "Type=TCP"}, nil},
	})
}
