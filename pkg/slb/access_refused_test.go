package slb

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// ranges returns n source ranges.
func ranges(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("192.0.%d.%d/32", i/250, i%250))
	}
	return all
}

// TestAListInDoubtHoldsNoListener: an access control list that cannot be read, made or filled keeps a listener that is there from nothing
// but another access control. It follows its node port and its certificate, and neither it nor a new one admits more than before.
func TestAListInDoubtHoldsNoListener(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before []string
		fault  map[string]any
		after  []string
		want   string // access control of the listener
		serves bool   // a new port
	}{
		"unread": {ranges(1),
			map[string]any{"action": "DescribeAccessControlLists", "code": "Forbidden.RAM", "status": 403, "times": 0}, ranges(1), "on", false},
		"an entry refused": {ranges(1),
			map[string]any{"action": "AddAccessControlListEntry", "code": "InvalidParameter", "status": 400, "times": 0}, ranges(2), "on", false},
		"no room for more": {ranges(1),
			map[string]any{"action": "AddAccessControlListEntry", "code": "QuotaLimitExceeds.TotalAclEntry", "status": 400, "times": 0}, ranges(2),
			"on", false},
		"no room for one": {nil, map[string]any{"action": "CreateAccessControlList", "code": "OverQuota", "status": 400, "times": 0},
			ranges(1), "off", false},
		"more than it takes": {ranges(1), nil, ranges(301), "on", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := testService("web", 443)
			annotate(svc, annotation.ProtocolPort, "https:443")
			annotate(svc, annotation.CertID, testCertificate)
			svc.Spec.LoadBalancerSourceRanges = test.before
			w := settled(t, svc)
			if test.fault != nil {
				w.fault(test.fault)
			}
			w.change("web", func(svc *corev1.Service) {
				svc.Spec.LoadBalancerSourceRanges = test.after
				svc.Spec.Ports[0].NodePort = 31000
				svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
				annotate(svc, annotation.CertID, "cert-2")
			})
			for range 3 {
				_ = w.pass("web") //nolint:errcheck // it fails
			}
			listener := w.state()["a0f5e8a1cweb"].Listeners["https:443"]
			if listener["VServerGroupId"] != "k8s/31000/web/default/c1" ||
				!strings.Contains(fmt.Sprint(listener["HTTPSListenerConfig"]), "ServerCertificateId:cert-2 ") || listener["AclStatus"] != test.want {
				t.Errorf("the listener leads to %v with %v and access control %v; want the new node port, the new certificate and %s",
					listener["VServerGroupId"], listener["HTTPSListenerConfig"], listener["AclStatus"], test.want)
			}
			if _, serves := w.closed()["tcp:81"]; serves != test.serves {
				t.Errorf("the new port serves: %v", serves)
			}
			if test.fault != nil {
				w.clearFaults()
				w.restart()
				w.converge("web")
				if closed := w.closed(); closed["https:443"] != "on" || closed["tcp:81"] != "on" || len(w.entries()) != len(test.after) {
					t.Errorf("in the end: access control %v, %d entries", closed, len(w.entries()))
				}
			}
		})
	}
}
