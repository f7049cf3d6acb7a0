package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
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
	if kind, typed := typeOf(config, svc); typed {
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
	if slices.ContainsFunc(svc.Finalizers, func(f string) bool { return strings.HasPrefix(f, finalizers) }) {
		return HasFinalizer(svc, p.Finalizer)
	}
	return !p.Classless
}

// Serves reports whether the product makes passes over a Service: it has something of the product, or asks for that and has nothing of
// another one.
func (p Product) Serves(config config.Config, svc *corev1.Service) bool {
	return HasFinalizer(svc, p.Finalizer) ||
		p.AskedBy(config, svc) && !slices.ContainsFunc(svc.Finalizers, func(f string) bool { return strings.HasPrefix(f, finalizers) })
}

// finalizers begins the finalizers of all products.
const finalizers = "service.k8s.alibaba/"

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
	_, typed := typeOf(config, svc)
	return typed
}

// typeOf returns the value of the annotation [annotation.Type] where it is read.
func typeOf(config config.Config, svc *corev1.Service) (kind string, typed bool) {
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

// engineOf returns the engine that the next pass over a Service is for: one whose finalizer says that it has a load balancer for the
// Service, although another one is asked for, before that. That way nothing of the old product is left behind, even if the class
// changed while this program did not run. For a Service that nobody serves it is the first.
func (o Options) engineOf(svc *corev1.Service) Engine {
	selected := o.selectedEngine(svc)
	for _, engine := range o.Engines {
		if engine != selected && HasFinalizer(svc, engine.Product().Finalizer) {
			return engine
		}
	}
	if selected == nil {
		return o.Engines[0]
	}
	return selected
}

// selectedEngine returns the engine that a Service asks for, nil for none: by the annotation [annotation.Type], where it is read, else by
// its class. The annotation alone moves nothing that carries traffic: a Service without a class stays on the product that it is on.
func (o Options) selectedEngine(svc *corev1.Service) Engine {
	if o.servedElsewhere(svc) {
		return nil
	}
	selected := o.findEngine(func(p Product) bool { return p.AskedBy(o.Config, svc) })
	if selected == nil || !HandsOver(o.Config, svc) {
		return selected
	}
	if holder := o.findEngine(func(p Product) bool { return p.Wants(svc) && HasFinalizer(svc, p.Finalizer) }); holder != nil {
		return holder
	}
	return selected
}

// findEngine returns the engine of the first product that fits, nil for none.
func (o Options) findEngine(fits func(Product) bool) Engine {
	for _, engine := range o.Engines {
		if fits(engine.Product()) {
			return engine
		}
	}
	return nil
}

// servedElsewhere reports whether a product that this program does not serve has a load balancer for the Service.
func (o Options) servedElsewhere(svc *corev1.Service) bool {
	return slices.ContainsFunc(o.Elsewhere, func(p Product) bool { return HasFinalizer(svc, p.Finalizer) })
}

// isForeign reports whether the Service belongs to another load balancer class, so that its status is not ours.
func (o Options) isForeign(svc *corev1.Service) bool {
	class := svc.Spec.LoadBalancerClass
	return class != nil && o.findEngine(func(p Product) bool { return p.Class == *class }) == nil
}

// changesProduct reports whether another product than the one that the Service asks for has a load balancer for it. That one goes first.
func (o Options) changesProduct(svc *corev1.Service) bool {
	return o.engineOf(svc) != o.selectedEngine(svc)
}

// hasFinalizer reports whether the Service has a finalizer of an engine, so that it must be torn down before it may go.
func (o Options) hasFinalizer(svc *corev1.Service) bool {
	return !o.servedElsewhere(svc) && o.findEngine(func(p Product) bool { return HasFinalizer(svc, p.Finalizer) }) != nil
}

// wantsBalancer reports whether the Service is to have a load balancer.
func (o Options) wantsBalancer(svc *corev1.Service) bool { return o.selectedEngine(svc) != nil }

// handedOver reports whether the Service would have a load balancer if no annotation gave it to somebody else. A load balancer that it
// has stays as it is until the Service goes: switching the gate on must not tear down what carries traffic.
func (o Options) handedOver(svc *corev1.Service) bool {
	return HandsOver(o.Config, svc) && !o.wantsBalancer(svc) && !o.servedElsewhere(svc) && o.findEngine(func(p Product) bool {
		return p.Wants(svc)
	}) != nil
}

// needsReconcile reports whether the Service needs a pass at all.
func (o Options) needsReconcile(svc *corev1.Service) bool {
	return o.wantsBalancer(svc) || o.handedOver(svc) || o.hasFinalizer(svc)
}

// typeProblem is that the annotation [annotation.Type] asks for another product than the one that the Service is on.
func (o Options) typeProblem(svc *corev1.Service, product Product) []problem.Problem {
	kind, typed := typeOf(o.Config, svc)
	if !typed || kind == product.Type {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonAnnotationNoEffect,
		"%s: %q has no effect on a Service that has a %s: it would lose its address; create another Service, or set the type to ClusterIP until the %s is deleted",
		annotation.Type, kind, product.Name, product.Name)}
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

// ByAge compares two Services by when they were created, then by their UIDs: the order in which Services have the right to what only one
// can have.
func ByAge(a, b *corev1.Service) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}
