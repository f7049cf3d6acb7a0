package build_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestProtocolPortMeansWhatTheOfficialCCMMeans: the protocol of the Service port does not restrict the annotation; where the Service
// declares both TCP and UDP on a port, the annotation is about the one of its own family.
func TestProtocolPortMeansWhatTheOfficialCCMMeans(t *testing.T) {
	t.Parallel()
	udp := testkube.Port(80, corev1.ProtocolUDP)
	for _, test := range []struct {
		ports     []corev1.ServicePort
		value     string
		listeners []string
	}{
		{[]corev1.ServicePort{testkube.Port(80, corev1.ProtocolTCP)}, "udp:80", []string{"udp:80"}},
		{[]corev1.ServicePort{udp}, "tcp:80", []string{"tcp:80"}},
		{[]corev1.ServicePort{udp}, "http:80", []string{"http:80"}},
		{[]corev1.ServicePort{testkube.Port(80, corev1.ProtocolTCP), udp}, "http:80", []string{"http:80", "udp:80"}},
		{[]corev1.ServicePort{testkube.Port(80, corev1.ProtocolTCP), udp}, "udp:80", []string{"tcp:80", "udp:80"}},
	} {
		c := newFixture()
		c.svc.Spec.Ports = test.ports
		annotate(c.svc, annotation.ProtocolPort, test.value)
		built, _ := c.build()
		var listeners []string
		for _, listener := range built.Listeners {
			listeners = append(listeners, listener.ListenerKey.String())
		}
		slices.Sort(listeners)
		if diff := cmp.Diff(test.listeners, listeners); diff != "" {
			t.Errorf("%s of %d ports (-want +got):\n%s", test.value, len(test.ports), diff)
		}
	}
}
