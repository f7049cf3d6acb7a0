package nlb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// portStatuses returns what the status of the Service says about its ports.
func (n nlb) portStatuses() []corev1.PortStatus {
	if n.desired == nil {
		return nil
	}
	return service.PortStatuses(n.ports, func(port corev1.ServicePort) string { return unserved(port, n.desired, n.listeners.Value) })
}

// unserved returns the reason of the event about a port that is not served, "" for one that is served or soon may be.
func unserved(port corev1.ServicePort, desired *model.Model, actual []model.Listener) string {
	i := slices.IndexFunc(desired.Listeners, func(l model.Listener) bool {
		return l.ServicePort == port.Port && (l.Protocol == alicloud.NLBUDP) == (port.Protocol == corev1.ProtocolUDP)
	})
	if i < 0 {
		return problem.ReasonFeatureNotSupported
	}
	want := &desired.Listeners[i]
	conflict := false
	for at := range actual {
		have := &actual[at]
		switch {
		case !have.Overlaps(want):
		case ofOneService(have, want) && have.Key() == want.Key():
			return "" // also one of another protocol, which stands in for the wanted one
		case !ofOneService(have, want):
			conflict = true
		}
	}
	if conflict {
		return problem.ReasonListenerConflict
	}
	return want.Blocked
}

// ofOneService reports whether two listeners have the marks of the same Service.
func ofOneService(a, b *model.Listener) bool {
	first, firstCluster, ok := mark.ParseNLB(model.Text(a.Description))
	second, secondCluster, marked := mark.ParseNLB(model.Text(b.Description))
	return ok && marked && first == second && firstCluster == secondCluster
}
