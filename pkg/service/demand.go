package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// demand is what the Services of a product want. services are all of them, bySelector what those want that select their nodes by the same
// labels, the empty text for those that select none.
type demand struct {
	services []types.UID
	// local is how many times a node becomes a backend of Services whose pods determine the backends if each of them has it.
	local      int
	bySelector map[string]wanted
}

// wanted is how many times a node becomes a backend if each Service gets what it wants: auto by Services that want all nodes, and by those
// that want a number of nodes, fixed for each such number.
type wanted struct {
	auto  int
	fixed map[int]int
}

// times is how many times all of n nodes together become backends of Services that want a number of them: of no more nodes than there are.
func (w wanted) times(n int) int {
	times := 0
	for number, each := range w.fixed {
		times += min(number, n) * each
	}
	return times
}

// of returns how many times each of n nodes becomes a backend that a Service with these labels selects. Nodes that others select count for
// those only: which nodes those are is not worth finding out, because the cloud refuses what is too much, and the others keep the nodes
// that they have. locals is how many times the nodes together are backends of Services whose pods determine the backends.
func (d demand) of(selector string, n, locals int) int {
	all := d.bySelector[""]
	auto, fixed := all.auto, all.times(n)
	if selector != "" {
		own := d.bySelector[selector]
		auto, fixed = auto+own.auto, fixed+own.times(n)
	}
	if n == 0 {
		return auto
	}
	return auto + (fixed+locals+n-1)/n
}

// most is how many times an instance becomes a backend at most, whichever nodes the Services choose.
func (d demand) most() int {
	most := d.local
	for _, of := range d.bySelector {
		most += of.auto
		for _, each := range of.fixed {
			most += each
		}
	}
	return most
}

// countDemand counts the Services of a product whose backends are nodes. Services that share a load balancer by its ID count once, those of
// a group as many times as it has load balancers, together with others that name one of these by its ID.
func (r *Reconciler) countDemand(engine Engine) demand {
	found := demand{bySelector: map[string]wanted{}}
	services, err := r.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return found // the lister reads memory; it has no way to fail
	}
	product := engine.Product()
	shared, members := map[string]*sharedDemand{}, map[string][]*corev1.Service{}
	for _, svc := range services {
		if !r.opts.wantsBalancer(svc) || r.opts.engineOf(svc) != engine {
			continue
		}
		found.services = append(found.services, svc.UID)
		if r.onPods(svc) {
			continue
		}
		if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			found.local += product.attachmentsOf(svc)
			continue
		}
		text, _ := annotation.Lookup(svc.Annotations, annotation.BackendSubset)
		subset := r.subsetFor(text)
		key := sharedBy(svc)
		if key == "" || product.AttachedPerGroup {
			found.addService(selectorOf(svc), subset, product.attachmentsOf(svc))
			continue
		}
		if shared[key] == nil {
			shared[key] = &sharedDemand{}
		}
		shared[key].add(svc, subset)
		if strings.HasPrefix(key, groupKey) {
			members[key] = append(members[key], svc)
		}
	}
	joinGuests(shared, members)
	listeners := r.opts.Config.Quotas.Limit(product.ListenerQuota).Value
	for _, services := range shared {
		services.count(found, listeners)
	}
	return found
}

// addService counts a Service, or several with as many nodes each.
func (d demand) addService(selector string, subset backend.Subset, each int) {
	if each == 0 {
		return
	}
	of := d.bySelector[selector]
	if subset > 0 {
		if of.fixed == nil {
			of.fixed = map[int]int{}
		}
		of.fixed[int(subset)] += each
	} else {
		of.auto += each
	}
	d.bySelector[selector] = of
}

// sharedDemand is what Services want that share load balancers. ports are those of the Services that may overflow, guests how many of the
// load balancers others name by their IDs.
type sharedDemand struct {
	ports      int
	guests     int
	bySelector map[string]sharedWanted
}

// sharedWanted is how many Services want all nodes, and how many nodes the others want together.
type sharedWanted struct{ auto, nodes int }

func (d *sharedDemand) add(svc *corev1.Service, subset backend.Subset) {
	if annotation.Overflows(svc) {
		d.ports += len(svc.Spec.Ports)
	}
	if d.bySelector == nil {
		d.bySelector = map[string]sharedWanted{}
	}
	of := d.bySelector[selectorOf(svc)]
	if subset > 0 {
		of.nodes += int(subset)
	} else {
		of.auto++
	}
	d.bySelector[selectorOf(svc)] = of
}

// join adds what other Services want on the same load balancers.
func (d *sharedDemand) join(others *sharedDemand) {
	d.guests++
	d.ports += others.ports
	for selector, more := range others.bySelector {
		of := d.bySelector[selector]
		of.auto += more.auto
		of.nodes += more.nodes
		d.bySelector[selector] = of
	}
}

// joinGuests counts Services that name a load balancer of a group by its ID with those of the group. The Record of one of these says that
// it is the group's.
func joinGuests(shared map[string]*sharedDemand, members map[string][]*corev1.Service) {
	for key, services := range members {
		for _, svc := range services {
			id := svc.Labels[LabelLoadBalancerID]
			guests := shared[id]
			if guests == nil {
				continue
			}
			record, _ := RecordOn(svc)
			if group, ok := mark.ParseGroup(record.Group); ok && record.LoadBalancerID == id && sharedByGroup(group.Namespace, group.Name) == key {
				shared[key].join(guests)
				delete(shared, id)
			}
		}
	}
}

// balancers is how many load balancers there are at least for their listeners, of which each may have so many, 0 for any number.
func (d *sharedDemand) balancers(listeners int) int {
	least := max(d.guests, 1)
	if listeners <= 0 {
		return least
	}
	return max((d.ports+listeners-1)/listeners, least)
}

// count adds what the Services make of nodes at most: a node counts once on each load balancer, of whichever Services it is a backend
// there.
func (d *sharedDemand) count(into demand, listeners int) {
	balancers := d.balancers(listeners)
	all := d.bySelector[""].auto
	for selector, of := range d.bySelector {
		if selector != "" && all >= balancers {
			continue // each load balancer has all nodes already
		}
		whole := min(of.auto, balancers)
		into.addService(selector, backend.SubsetAuto, whole)
		if rest := balancers - whole; of.nodes > 0 && rest > 0 {
			into.addService(selector, backend.Subset((of.nodes+rest-1)/rest), rest)
		}
	}
}

// sharedBy names the load balancers that a Service may share with others, "" for one of its own. A Service that may not use the one that it
// asks for by its ID stays where it is.
func sharedBy(svc *corev1.Service) string {
	if id, ok := annotation.Lookup(svc.Annotations, annotation.LoadBalancerID); ok {
		id = strings.TrimSpace(id)
		at := svc.Labels[LabelLoadBalancerID]
		if at == "" || at == id {
			return id
		}
		record, _ := RecordOn(svc)
		if group, ok := mark.ParseGroup(record.Group); ok {
			return sharedByGroup(group.Namespace, group.Name)
		}
		return at
	}
	if namespace, name, ok := annotation.GroupOf(svc); ok {
		return sharedByGroup(namespace, name)
	}
	return ""
}

// groupKey begins what [sharedBy] returns for a group.
const groupKey = "group "

func sharedByGroup(namespace, name string) string { return groupKey + namespace + "/" + name }

// selectorOf returns the labels of the nodes of a Service that nobody has parsed, empty for all nodes.
func selectorOf(svc *corev1.Service) string {
	selector, _ := annotation.Lookup(svc.Annotations, annotation.BackendLabel)
	return selector
}

// onPods reports whether the annotation or the cloud-config makes addresses of pods the backends of a Service that nobody has parsed.
func (r *Reconciler) onPods(svc *corev1.Service) bool {
	kind, _ := annotation.BackendTypeOf(svc.Annotations)
	return backend.WantsPods(annotation.Params{BackendType: kind}, r.opts.Config.DefaultBackendENI)
}
