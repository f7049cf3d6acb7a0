package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// portErrorDomain is what the errors of ports begin with. Kubernetes asks for the form "domain/CamelCase".
const portErrorDomain = "service.alibabacloud.com/"

// portStatuses returns what the status of the Service says about its ports: nil while all are served, or soon may be, else all of them,
// those that are not served with the reason of the event about it. refused has the targets of steps that the cloud refused.
func portStatuses(ports []corev1.ServicePort, desired, actual *model.Model, refused map[string]bool) []corev1.PortStatus {
	var statuses []corev1.PortStatus
	failed := false
	for _, port := range ports {
		status := corev1.PortStatus{Port: port.Port, Protocol: port.Protocol}
		if reason := unserved(port, desired, actual, refused); reason != "" {
			status.Error, failed = new(portErrorDomain+reason), true
		}
		statuses = append(statuses, status)
	}
	if !failed {
		return nil
	}
	return statuses
}

// unserved returns the reason of the event about a port that is not served, "" for one that is served or soon may be.
func unserved(port corev1.ServicePort, desired, actual *model.Model, refused map[string]bool) string {
	i := slices.IndexFunc(desired.Listeners, func(l model.Listener) bool { return l.Port == int(port.Port) && l.ServicePort == port.Protocol })
	if i < 0 {
		return problem.ReasonFeatureNotSupported
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
