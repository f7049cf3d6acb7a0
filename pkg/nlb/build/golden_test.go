package build_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

// TestGolden compares whole models, each with all that is said to the Service's author. -update writes them.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		// One of each kind of port, on a load balancer that is to be created.
		"new": all(port(53, corev1.ProtocolUDP), port(443, corev1.ProtocolTCP), set("protocol-port", "tcpssl:443", "cert-id", "cert-1",
			"zone-maps", "z-a:vsw-a,z-b:vsw-b",
			"scheduler", "wlc", "health-check-flag", "on", "health-check-interval", "7"), ranges("10.0.0.0/8")),
		// The Service's own load balancer, from nodes to pods: the listener waits in the group that it has.
		"from-nodes-to-pods": all(pods, existing(registered("sgp-1", "30080.TCP", "i-a", "i-z"), ours(80, "TCP", "sgp-1")), set("name", "web-1")),
		// Somebody else's load balancer, with policy Local.
		"existing": all(overriding(), func(f *fixture) { testkube.LocalTraffic(f.svc) }, endpoints("10.9.0.1@a", "10.9.0.2@a", "!10.9.1.1@b"),
			set("cps", "100")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(80)
			change(f)
			built, problems := f.build()
			var text bytes.Buffer
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			testkit.Check(t, encoder.Encode(map[string]any{"model": compact(reflect.ValueOf(*built)), "problems": said(problems)}))
			golden.Fresh(t, filepath.Join("testdata", name+".json"), text.String())
		})
	}
}
