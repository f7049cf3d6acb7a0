package service

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// MaxPorts is how many ports a Service may have. No load balancer has as many listeners (the quota of a CLB is 50, and may be raised), and
// what is built for each port and each backend would take the memory of the manager.
const MaxPorts = 250

// checkBounds fails for a Service that nothing is built for.
func checkBounds(svc *corev1.Service) error {
	if n := len(svc.Spec.Ports); n > MaxPorts {
		return &problem.ConfigError{Field: "spec.ports", Reason: fmt.Sprintf("%d ports; accepted: at most %d", n, MaxPorts),
			Event: problem.ReasonFeatureNotSupported}
	}
	return nil
}

// withinBounds returns the Service with the ports that it had before it got too many, and why: what serves goes on to follow the nodes and
// pods. The Service is nil where nobody knows which ports these are.
func (s state) withinBounds(svc *corev1.Service) (*corev1.Service, state, error) {
	err := checkBounds(svc)
	switch {
	case err == nil:
		s.ports = svc.Spec.Ports
	case s.ports == nil:
		return nil, s, err
	default:
		bounded := *svc
		bounded.Spec.Ports = s.ports
		svc = &bounded
	}
	return svc, s, err
}
