package driver

import corev1 "k8s.io/api/core/v1"

// portErrorDomain is what the errors of ports begin with. Kubernetes asks for the form "domain/CamelCase".
const portErrorDomain = "service.alibabacloud.com/"

// PortStatuses returns what the status of a Service says about its ports: nil while all are served, or soon may be, else all of them.
// unserved returns the reason of the event about a port that is not served, "" for one that is served or soon may be.
func PortStatuses(ports []corev1.ServicePort, unserved func(corev1.ServicePort) string) []corev1.PortStatus {
	var statuses []corev1.PortStatus
	failed := false
	for _, port := range ports {
		status := corev1.PortStatus{Port: port.Port, Protocol: port.Protocol}
		if reason := unserved(port); reason != "" {
			status.Error, failed = new(portErrorDomain+reason), true
		}
		statuses = append(statuses, status)
	}
	if !failed {
		return nil
	}
	return statuses
}

// ShowPorts has every address of a status say which ports are not served.
func ShowPorts(status *corev1.LoadBalancerStatus, ports []corev1.PortStatus) {
	for i := range status.Ingress {
		status.Ingress[i].Ports = ports
	}
}
