package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// AnnotationClass hands a Service to another controller, whatever its value.
const AnnotationClass = "service.beta.kubernetes.io/class"

// Wants reports whether the Service is to have a load balancer of one of the classes, as far as the Service alone says. One that
// is being deleted is not.
func Wants(svc *corev1.Service, classes ...string) bool {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.DeletionTimestamp != nil || foreignClass(svc, classes) {
		return false
	}
	if svc.Annotations[AnnotationClass] != "" {
		return false
	}
	_, tunnelled := annotation.Lookup(svc.Annotations, annotation.TunnelType)
	return !tunnelled
}

// HandsOver reports whether the annotation [annotation.Type] gives the Service to somebody else. A load balancer that it has stays
// as it is until the Service goes: switching the gate on must not tear down what carries traffic.
func HandsOver(config config.Config, svc *corev1.Service) bool {
	_, typed := annotation.Lookup(svc.Annotations, annotation.Type)
	return config.TypeAnnotation && typed
}

// HasFinalizer reports whether the product with this finalizer must tear the Service down before it may go.
func HasFinalizer(svc *corev1.Service, finalizer string) bool {
	return slices.Contains(svc.Finalizers, finalizer)
}

// foreignClass reports whether the Service belongs to another load balancer class, so that its status is not ours.
func foreignClass(svc *corev1.Service, classes []string) bool {
	return svc.Spec.LoadBalancerClass != nil && !slices.Contains(classes, *svc.Spec.LoadBalancerClass)
}

// classes are those of all engines.
func (o Options) classes() []string {
	var classes []string
	for _, engine := range o.Engines {
		classes = append(classes, engine.Product().Class)
	}
	return classes
}

// engineOf returns the engine that the next pass over a Service is for: one whose finalizer says that it has a load balancer for the
// Service, although the class has changed, before the one of the class. That way nothing of the old product is left behind, even if the
// class changed while this program did not run.
func (o Options) engineOf(svc *corev1.Service) Engine {
	wanted := o.engineOfClass(svc)
	for _, engine := range o.Engines {
		if engine != wanted && HasFinalizer(svc, engine.Product().Finalizer) {
			return engine
		}
	}
	return wanted
}

// engineOfClass returns the engine that a Service asks for. One without a class, or of another class than any engine's, has the first.
func (o Options) engineOfClass(svc *corev1.Service) Engine {
	for _, engine := range o.Engines {
		if class := svc.Spec.LoadBalancerClass; class != nil && *class == engine.Product().Class {
			return engine
		}
	}
	return o.Engines[0]
}

// foreign reports whether the Service belongs to another load balancer class.
func (o Options) foreign(svc *corev1.Service) bool { return foreignClass(svc, o.classes()) }

// changesProduct reports whether another product than the one that the Service asks for has a load balancer for it. That one goes first.
func (o Options) changesProduct(svc *corev1.Service) bool {
	return o.engineOf(svc) != o.engineOfClass(svc)
}

// held reports whether the Service must be torn down before it may go.
func (o Options) held(svc *corev1.Service) bool {
	return slices.ContainsFunc(o.Engines, func(e Engine) bool { return HasFinalizer(svc, e.Product().Finalizer) })
}

// wants reports whether the Service is to have a load balancer.
func (o Options) wants(svc *corev1.Service) bool {
	return Wants(svc, o.classes()...) && !HandsOver(o.Config, svc)
}

// handedOver reports whether the Service would have a load balancer if no annotation gave it to somebody else.
func (o Options) handedOver(svc *corev1.Service) bool {
	return Wants(svc, o.classes()...) && HandsOver(o.Config, svc)
}

// needsReconcile reports whether the Service needs a pass at all.
func (o Options) needsReconcile(svc *corev1.Service) bool {
	return Wants(svc, o.classes()...) || o.held(svc)
}

func handOverProblem(svc *corev1.Service, product Product) problem.Problem {
	kind, _ := annotation.Lookup(svc.Annotations, annotation.Type)
	text := ""
	if id := svc.Labels[LabelLoadBalancerID]; id != "" {
		text = fmt.Sprintf("; %s %s stays as it is until the Service is deleted", product.Name, id)
	}
	return problem.Newf(problem.ReasonFeatureNotSupported, "%s: %q leaves the Service to another controller (feature gate %s)%s",
		annotation.Type, kind, annotation.GateLoadBalancerType, text)
}
