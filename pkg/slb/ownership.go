package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// annotationClass hands a Service to another controller, whatever its value.
const annotationClass = "service.beta.kubernetes.io/class"

// WantsLoadBalancer reports whether the Service is to have a CLB, as far as the Service alone says. One that is being deleted is not.
func WantsLoadBalancer(svc *corev1.Service) bool {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.DeletionTimestamp != nil || foreignClass(svc) {
		return false
	}
	if svc.Annotations[annotationClass] != "" {
		return false
	}
	_, tunnelled := annotation.Lookup(svc.Annotations, annotation.TunnelType)
	return !tunnelled
}

// wantsLoadBalancer reports whether the Service is to have a CLB.
func wantsLoadBalancer(config config.Config, svc *corev1.Service) bool {
	return WantsLoadBalancer(svc) && !handsOver(config, svc)
}

// handsOver reports whether the annotation [annotation.Type] gives the Service to somebody else. A CLB that it has stays as it is
// until the Service goes: switching the gate on must not tear down what carries traffic.
func handsOver(config config.Config, svc *corev1.Service) bool {
	_, typed := annotation.Lookup(svc.Annotations, annotation.Type)
	return config.TypeAnnotation && typed
}

// foreignClass reports whether the Service belongs to another load balancer class, so that its status is not ours.
func foreignClass(svc *corev1.Service) bool {
	return svc.Spec.LoadBalancerClass != nil && *svc.Spec.LoadBalancerClass != Class
}

// hasFinalizer reports whether the Service must be torn down before it may go.
func hasFinalizer(svc *corev1.Service) bool {
	return slices.Contains(svc.Finalizers, Finalizer)
}

// needsReconcile reports whether the Service needs a pass at all.
func needsReconcile(svc *corev1.Service) bool { return WantsLoadBalancer(svc) || hasFinalizer(svc) }
