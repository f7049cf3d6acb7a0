package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// portStatuses returns what the status of the Service says about its ports. refused has the targets of steps that the cloud refused.
func portStatuses(ports []corev1.ServicePort, desired, actual *model.Model, refused map[string]bool) []corev1.PortStatus {
	return driver.PortStatuses(ports, func(port corev1.ServicePort) string { return unservedReason(port, desired, actual, refused) })
}

// unservedReason returns the reason of the event about a port that is not served, "" for one that is served or soon may be.
func unservedReason(port corev1.ServicePort, desired, actual *model.Model, refused map[string]bool) string {
	i := slices.IndexFunc(desired.Listeners, func(l model.Listener) bool { return l.Port == int(port.Port) && l.ServicePort == port.Protocol })
	if i < 0 {
		return undesiredReason(port, desired)
	}
	want := &desired.Listeners[i]
	conflict := false
	for at := range actual.Listeners {
		have := &actual.Listeners[at]
		if have.Port != want.Port || (have.Protocol == alicloud.ProtocolUDP) != (want.Protocol == alicloud.ProtocolUDP) {
			continue
		}
		if have.Description == want.Description {
			return "" // also one of another protocol, which stands in for the wanted one
		}
		conflict = true
	}
	switch {
	case conflict:
		return problem.ReasonListenerConflict
	case want.Blocked:
		return problem.ReasonSkipSyncBackends
	case want.UpdateOnly:
		return problem.ReasonInvalidAnnotation
	case refused[model.TargetListener(want.ListenerKey)]:
		return problem.ReasonSyncFailed
	}
	return ""
}

// undesiredReason returns the reason of a port that is to have no listener.
func undesiredReason(port corev1.ServicePort, desired *model.Model) string {
	if slices.ContainsFunc(desired.Conflicts, func(key alicloud.ListenerKey) bool {
		return key.Port == int(port.Port) && (key.Protocol == alicloud.ProtocolUDP) == (port.Protocol == corev1.ProtocolUDP)
	}) {
		return problem.ReasonListenerConflict
	}
	return problem.ReasonFeatureNotSupported
}
