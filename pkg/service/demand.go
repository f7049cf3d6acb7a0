package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// demand is what the Services of a product want. bySelector is what those with externalTrafficPolicy Cluster want that select their nodes
// by the same labels, the empty text for those that select none.
type demand struct {
	services   sets.Set[types.UID]
	bySelector map[string]wanted
	// most is how many times an instance becomes a backend at most, whichever nodes the Services choose.
	most int
}

// wanted is how many times a node becomes a backend: auto by Services that want all nodes, and by those that want a number of nodes, fixed
// for each such number.
type wanted struct {
	auto  int
	fixed map[int]int
}

// unitsFor is how many times each of n nodes becomes a backend that a Service with these labels selects. Nodes that others select count for
// those only.
func (d demand) unitsFor(selector string, n int) int {
	auto, fixed := d.bySelector[""].countsAmong(n)
	if selector != "" {
		own, more := d.bySelector[selector].countsAmong(n)
		auto, fixed = auto+own, fixed+more
	}
	if n == 0 {
		return auto
	}
	return auto + (fixed+n-1)/n
}

func (w wanted) countsAmong(n int) (auto, fixed int) {
	for number, each := range w.fixed {
		fixed += min(number, n) * each
	}
	return w.auto, fixed
}

// countDemand counts the Services of a product whose backends are nodes: those that share a load balancer once for the nodes that they have
// in common.
func (r *Reconciler) countDemand(engine driver.Engine) demand {
	found := demand{services: sets.New[types.UID](), bySelector: map[string]wanted{}}
	services, err := r.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return found // the lister reads memory; it has no way to fail
	}
	product, whole := engine.Product(), sets.New[[2]string]()
	var some []*corev1.Service
	for _, svc := range services {
		if !r.opts.wantsBalancer(svc) || r.opts.engineOf(svc) != engine {
			continue
		}
		found.services.Insert(svc.UID)
		switch on := balancerOf(svc); {
		case r.onPods(svc):
		case svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal:
			found.most += product.AttachmentsOf(svc)
		case on == "" || product.AttachedPerGroup:
			found.addService(selectorOf(svc), r.subsetOf(svc), product.AttachmentsOf(svc))
		case r.subsetOf(svc) > 0:
			some = append(some, svc)
		case !whole.Has([2]string{on, selectorOf(svc)}):
			whole.Insert([2]string{on, selectorOf(svc)})
			found.addService(selectorOf(svc), backend.SubsetAuto, 1)
		}
	}
	for _, svc := range some { // beside a Service with all nodes, they are among those
		if !whole.Has([2]string{balancerOf(svc), selectorOf(svc)}) {
			found.addService(selectorOf(svc), r.subsetOf(svc), 1)
		}
	}
	return found
}

// addService counts a Service with externalTrafficPolicy Cluster.
func (d *demand) addService(selector string, subset backend.Subset, each int) {
	d.most += each
	d.bySelector[selector] = d.bySelector[selector].withSubset(subset, each)
}

// selectorOf returns the labels of the nodes of a Service that nobody has parsed, empty for all nodes.
func selectorOf(svc *corev1.Service) string {
	selector, _ := annotation.Lookup(svc.Annotations, annotation.BackendLabel)
	return selector
}

// subsetOf returns how many nodes a Service asks for that nobody has parsed.
func (r *Reconciler) subsetOf(svc *corev1.Service) backend.Subset {
	text, _ := annotation.Lookup(svc.Annotations, annotation.BackendSubset)
	return r.subsetFor(text)
}

func (w wanted) withSubset(subset backend.Subset, each int) wanted {
	switch {
	case subset <= 0:
		w.auto += each
		return w
	case w.fixed == nil:
		w.fixed = map[int]int{}
	}
	w.fixed[int(subset)] += each
	return w
}

// balancerOf names the load balancer that a Service shares, empty for one of its own: the one that it shows, else the one that it asks for.
func balancerOf(svc *corev1.Service) string {
	id, byID := annotation.Lookup(svc.Annotations, annotation.LoadBalancerID)
	namespace, name, byGroup := annotation.GroupOf(svc)
	switch shown := svc.Labels[driver.LabelLoadBalancerID]; {
	case !byID && !byGroup:
		return ""
	case shown != "":
		return shown
	case byID:
		return id
	}
	return "group " + namespace + "/" + name
}

// onPods reports whether the annotation or the cloud-config makes addresses of pods the backends of a Service that nobody has parsed.
func (r *Reconciler) onPods(svc *corev1.Service) bool {
	kind, _ := annotation.BackendTypeOf(svc.Annotations)
	return backend.WantsPods(annotation.Params{BackendType: kind}, r.opts.Config.DefaultBackendENI)
}
