package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// engineOf returns the engine that the next pass over a Service is for: one whose finalizer says that it has a load balancer for the
// Service, although another one is asked for, before that. That way nothing of the old product is left behind, even if the class
// changed while this program did not run. For a Service that nobody serves it is the first.
func (o Options) engineOf(svc *corev1.Service) driver.Engine {
	selected := o.selectedEngine(svc)
	for _, engine := range o.Engines {
		if engine != selected && driver.HasFinalizer(svc, engine.Product().Finalizer) {
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
func (o Options) selectedEngine(svc *corev1.Service) driver.Engine {
	if o.servedElsewhere(svc) {
		return nil
	}
	selected := o.findEngine(func(p driver.Product) bool { return p.AskedBy(o.Config, svc) })
	if selected == nil || !driver.HandsOver(o.Config, svc) {
		return selected
	}
	if holder := o.findEngine(func(p driver.Product) bool { return p.Wants(svc) && driver.HasFinalizer(svc, p.Finalizer) }); holder != nil {
		return holder
	}
	return selected
}

// findEngine returns the engine of the first product that fits, nil for none.
func (o Options) findEngine(fits func(driver.Product) bool) driver.Engine {
	for _, engine := range o.Engines {
		if fits(engine.Product()) {
			return engine
		}
	}
	return nil
}

// servedElsewhere reports whether a product that this program does not serve has a load balancer for the Service.
func (o Options) servedElsewhere(svc *corev1.Service) bool {
	return slices.ContainsFunc(o.Elsewhere, func(p driver.Product) bool { return driver.HasFinalizer(svc, p.Finalizer) })
}

// isForeign reports whether the Service belongs to another load balancer class, so that its status is not ours.
func (o Options) isForeign(svc *corev1.Service) bool {
	class := svc.Spec.LoadBalancerClass
	return class != nil && o.findEngine(func(p driver.Product) bool { return p.Class == *class }) == nil
}

// changesProduct reports whether another product than the one that the Service asks for has a load balancer for it. That one goes first.
func (o Options) changesProduct(svc *corev1.Service) bool {
	return o.engineOf(svc) != o.selectedEngine(svc)
}

// hasFinalizer reports whether the Service has a finalizer of an engine, so that it must be torn down before it may go.
func (o Options) hasFinalizer(svc *corev1.Service) bool {
	return !o.servedElsewhere(svc) && o.findEngine(func(p driver.Product) bool { return driver.HasFinalizer(svc, p.Finalizer) }) != nil
}

// wantsBalancer reports whether the Service is to have a load balancer.
func (o Options) wantsBalancer(svc *corev1.Service) bool { return o.selectedEngine(svc) != nil }

// handedOver reports whether the Service would have a load balancer if no annotation gave it to somebody else. A load balancer that it
// has stays as it is until the Service goes: switching the gate on must not tear down what carries traffic.
func (o Options) handedOver(svc *corev1.Service) bool {
	return driver.HandsOver(o.Config, svc) && !o.wantsBalancer(svc) && !o.servedElsewhere(svc) && o.findEngine(func(p driver.Product) bool {
		return p.Wants(svc)
	}) != nil
}

// needsReconcile reports whether the Service needs a pass at all.
func (o Options) needsReconcile(svc *corev1.Service) bool {
	return o.wantsBalancer(svc) || o.handedOver(svc) || o.hasFinalizer(svc)
}

// typeProblem is that the annotation [annotation.Type] asks for another product than the one that the Service is on.
func (o Options) typeProblem(svc *corev1.Service, product driver.Product) []problem.Problem {
	kind, typed := driver.TypeOf(o.Config, svc)
	if !typed || kind == product.Type {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonAnnotationNoEffect,
		"%s: %q has no effect on a Service that has a %s: it would lose its address; create another Service, or set the type to ClusterIP until the %s is deleted",
		annotation.Type, kind, product.Name, product.Name)}
}

func handOverProblem(svc *corev1.Service, product driver.Product) problem.Problem {
	kind, _ := annotation.Lookup(svc.Annotations, annotation.Type)
	text := ""
	if id := svc.Labels[driver.LabelLoadBalancerID]; id != "" {
		text = fmt.Sprintf("; %s %s stays as it is until the Service is deleted", product.Name, id)
	}
	return problem.Newf(problem.ReasonFeatureNotSupported, "%s: %q leaves the Service to another controller (feature gate %s)%s",
		annotation.Type, kind, annotation.GateLoadBalancerType, text)
}
