package backend

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// proxyHealthPort is where kube-proxy says whether it forwards connections at all, and NodeCheckPath is the path there and at the port of
// one Service.
// Source: https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/3836-kube-proxy-improved-ingress-connectivity-reliability.
const (
	proxyHealthPort = 10256
	NodeCheckPath   = "/healthz"
)

// NodeCheckPort is the port at which nodes are checked by what kube-proxy says of them, 0 where the annotation does not ask for that, or
// the port is not known yet: with the policy Local, the API server allocates one for the Service, at which only nodes with ready endpoints
// answer that they serve.
func NodeCheckPort(svc *corev1.Service, params annotation.Params, pods bool) int {
	switch {
	case pods || params.Get(annotation.HealthCheck) != annotation.CheckNode:
		return 0
	case svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal:
		return int(svc.Spec.HealthCheckNodePort)
	}
	return proxyHealthPort
}
