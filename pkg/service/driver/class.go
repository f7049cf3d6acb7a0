package driver

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// AnnotationClass hands a Service to another controller, whatever its value.
const AnnotationClass = "service.beta.kubernetes.io/class"

// Wants reports whether the Service is to have a load balancer of the product, as far as its class says. One that is being deleted is
// not.
func (p Product) Wants(svc *corev1.Service) bool {
	class := svc.Spec.LoadBalancerClass
	if class == nil && !p.Classless || p.Classless && svc.Annotations[AnnotationClass] != "" {
		return false
	}
	return p.mayServe(svc)
}

// AskedBy reports whether the Service asks for a load balancer of the product: by the annotation [annotation.Type], where it is read, else
// by its class.
func (p Product) AskedBy(config config.Config, svc *corev1.Service) bool {
	if kind, typed := TypeOf(config, svc); typed {
		return p.Type != "" && p.Type == kind && p.mayServe(svc)
	}
	if svc.Spec.LoadBalancerClass == nil && config.DefaultNLB {
		p.Classless = p.isDefault(svc)
	}
	return p.Wants(svc)
}

// isDefault reports whether a Service without a class is the product's where the cloud-config has these get an NLB. One that has a load
// balancer keeps it: another one would have another address.
func (p Product) isDefault(svc *corev1.Service) bool {
	if hasAnyFinalizer(svc) {
		return HasFinalizer(svc, p.Finalizer)
	}
	return !p.Classless
}

// Serves reports whether the product makes passes over a Service: it has something of the product, or asks for that and has nothing of
// another one.
func (p Product) Serves(config config.Config, svc *corev1.Service) bool {
	return HasFinalizer(svc, p.Finalizer) || p.AskedBy(config, svc) && !hasAnyFinalizer(svc)
}

// Finalizers begins the finalizers of all products.
const Finalizers = "service.k8s.alibaba/"

// mayServe reports whether the Service is a load balancer of this class, or of none, and nothing hands it to somebody else.
func (p Product) mayServe(svc *corev1.Service) bool {
	class := svc.Spec.LoadBalancerClass
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.DeletionTimestamp != nil || class != nil && *class != p.Class {
		return false
	}
	_, tunneled := annotation.Lookup(svc.Annotations, annotation.TunnelType)
	return !tunneled
}

// AskedGroup returns the group that a Service asks for and may join, false for none.
func AskedGroup(config config.Config, svc *corev1.Service) (mark.Group, bool) {
	namespace, name, ok := annotation.GroupOf(svc)
	if !ok || !config.Policy.AllowsGroup(svc.Namespace, namespace, name) {
		return mark.Group{}, false
	}
	return mark.Group{ClusterID: config.ClusterID, Namespace: namespace, Name: name}, true
}

// HandsOver reports whether the annotation [annotation.Type] says what serves the Service, in place of its class.
func HandsOver(config config.Config, svc *corev1.Service) bool {
	_, typed := TypeOf(config, svc)
	return typed
}

// TypeOf returns the value of the annotation [annotation.Type] where it is read.
func TypeOf(config config.Config, svc *corev1.Service) (kind string, typed bool) {
	if !config.TypeAnnotation {
		return "", false
	}
	kind, typed = annotation.Lookup(svc.Annotations, annotation.Type)
	return strings.TrimSpace(kind), typed
}

// HasFinalizer reports whether the product with this finalizer must tear the Service down before it may go.
func HasFinalizer(svc *corev1.Service, finalizer string) bool {
	return slices.Contains(svc.Finalizers, finalizer)
}

// hasAnyFinalizer reports whether a Service has something of any product.
func hasAnyFinalizer(svc *corev1.Service) bool {
	return slices.ContainsFunc(svc.Finalizers, func(f string) bool { return strings.HasPrefix(f, Finalizers) })
}

// ByAge compares two Services by when they were created, then by their UIDs: the order in which Services have the right to what only one
// can have.
func ByAge(a, b *corev1.Service) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}
