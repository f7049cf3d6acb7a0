package service

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// attached is how many times instances are backends for the quota of the cloud. An instance is behind a load balancer once, however many of
// the Services that share it have the instance. Its zero value is empty.
type attached struct {
	// of is how many times an instance is one; [anyInstance] is how many times each one is, beside that.
	of map[string]int
	// on counts the Services that have an instance, by load balancers that several of them share; of those that have all nodes, by
	// [anyInstance].
	on map[string]map[string]int
}

// anyInstance stands for each instance of the cluster.
const anyInstance = ""

// count notes that a Service has its backends, by 1, or has them no more, by -1.
func (a *attached) count(held stake, by int) {
	if held.whole {
		a.add(held.on, anyInstance, held.each, by)
		return
	}
	for _, id := range held.ids {
		a.add(held.on, id, held.each, by)
	}
}

// add notes that a Service has an instance as a backend so many times, by 1, or has it no more, by -1. on is the load balancer that the
// Service shares, empty for one of its own.
func (a *attached) add(on, id string, each, by int) {
	if a.of == nil {
		a.of, a.on = map[string]int{}, map[string]map[string]int{}
	}
	if on == "" {
		a.change(id, by*each)
		return
	}
	services := a.on[on]
	if services == nil {
		services = map[string]int{}
		a.on[on] = services
	}
	before := services[id]
	if services[id] += by; services[id] == 0 {
		delete(services, id)
	}
	if before+min(by, 0) == 0 { // no other Service has it
		a.changeOn(services, id, by*each)
	}
	if len(services) == 0 {
		delete(a.on, on)
	}
}

// changeOn counts an instance that came to a load balancer, or left it. Where a Service has all nodes, those of the others are among them.
func (a *attached) changeOn(services map[string]int, id string, n int) {
	switch {
	case id == anyInstance:
		for other := range services {
			if other != anyInstance {
				a.change(other, -n)
			}
		}
	case services[anyInstance] > 0:
		return
	}
	a.change(id, n)
}

func (a *attached) change(id string, n int) {
	if a.of[id] += n; a.of[id] == 0 {
		delete(a.of, id)
	}
}

// times is how many times an instance is a backend.
func (a *attached) times(id string) int {
	if id == anyInstance {
		return a.of[id]
	}
	return a.of[anyInstance] + a.of[id]
}

// most returns the instance that is most often a backend, and how many times it is one.
func (a *attached) most() (instanceID string, times int) {
	times = a.times(anyInstance)
	for id := range a.of {
		if n := a.times(id); n > times || n == times && id < instanceID {
			instanceID, times = id, n
		}
	}
	return instanceID, times
}

// fullest returns the instance that is a backend for the largest share of how many times it can be one, and how many times it is: instances
// to which the cloud has refused more can be as many times, all others limit times.
func (a *attached) fullest(limit int, refused map[string]int) (instanceID string, times int) {
	instanceID, times = a.most()
	most := limit
	if value, ok := refused[instanceID]; ok {
		most = value
	}
	for _, id := range slices.Sorted(maps.Keys(refused)) {
		if n := a.times(id); n*most > times*refused[id] {
			instanceID, times, most = id, n, refused[id]
		}
	}
	return instanceID, times
}

// has reports whether a Service has the instance on a load balancer.
func (a *attached) has(loadBalancer, id string) bool {
	services := a.on[loadBalancer]
	return services[id]+services[anyInstance] > 0
}

// shares reports whether several Services have the instance on a load balancer.
func (a *attached) shares(loadBalancer, id string) bool {
	services := a.on[loadBalancer]
	if id == anyInstance {
		return services[anyInstance] > 1
	}
	return services[id]+services[anyInstance] > 1
}

// beside are the instances that Services have on a load balancer which do not have all nodes.
func (a *attached) beside(loadBalancer string) []string {
	var ids []string
	for id := range a.on[loadBalancer] {
		if id != anyInstance {
			ids = append(ids, id)
		}
	}
	return ids
}

// without is how many times an instance is a backend, without what another one would be on a load balancer where the instance is one
// already.
func (a *attached) without(loadBalancer string, each int, id string) int {
	if loadBalancer != "" && a.has(loadBalancer, id) {
		return a.times(id) - each
	}
	return a.times(id)
}

// sharedOn returns the load balancer on which an instance counts once for all Services that share it, empty for none.
func sharedOn(product Product, svc *corev1.Service, balancer Balancer, params annotation.Params) string {
	if product.AttachedPerGroup || balancer.SharedID(svc, params) == "" {
		return ""
	}
	return balancer.ID()
}
