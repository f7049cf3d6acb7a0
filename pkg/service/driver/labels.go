package driver

import (
	corev1 "k8s.io/api/core/v1"
	servicehelpers "k8s.io/cloud-provider/service/helpers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// Finalizers and labels on the Service.
const (
	// StockFinalizer is that of the service controller of k8s.io/cloud-provider. It is never written.
	StockFinalizer = servicehelpers.LoadBalancerCleanupFinalizer
	// LabelLoadBalancerID holds the id of the load balancer; other programs find the load balancer by it.
	LabelLoadBalancerID = "service.k8s.alibaba/loadbalancer-id"
	// LabelSecurityGroupID holds the id of the security group for the source ranges of an NLB, as with the official CCM.
	LabelSecurityGroupID = "service.k8s.alibaba/security-group-id"
	// LabelHash is that of the official CCM. A stale one would make it skip the creation of a load balancer.
	LabelHash = "service.beta.kubernetes.io/hash"
	// AnnotationPaused on a Service keeps this program from changing anything of it in the cloud, unless its value is "false".
	AnnotationPaused = annotation.Paused
)

// IsPaused reports whether an annotation pauses the Service. Any value but "false" does: who misspells "true" wants it all the same.
func IsPaused(svc *corev1.Service) bool {
	value, ok := svc.Annotations[AnnotationPaused]
	return ok && value != "false"
}
