package service

import corev1 "k8s.io/api/core/v1"

// attached is what Services have on load balancers that they share with others. An instance is behind such a load balancer once, however many of the Services
// have it as a backend. Its zero value is empty.
type attached struct {
	// on counts the Services that have an instance, by load balancers; of those that have all nodes, by [anyInstance].
	on map[string]map[string]int
	// again is how many times fewer an instance is behind load balancers than it is a backend of Services.
	again map[string]int
}

// anyInstance stands for each instance of the cluster.
const anyInstance = ""

// count notes that a Service has its backends, by 1, or has them no more, by -1.
func (a *attached) count(held stake, by int) {
	if held.on == "" {
		return
	}
	if a.on == nil {
		a.on, a.again = map[string]map[string]int{}, map[string]int{}
	}
	services := a.on[held.on]
	if services == nil {
		services = map[string]int{}
		a.on[held.on] = services
	}
	ids := held.ids
	if held.whole {
		ids = []string{anyInstance}
	}
	for _, id := range ids {
		if before := services[id]; before+min(by, 0) > 0 { // another Service has it, too
			a.again[id] += by * held.each
		}
		if services[id] += by; services[id] == 0 {
			delete(services, id)
		}
		if a.again[id] == 0 {
			delete(a.again, id)
		}
	}
	if len(services) == 0 {
		delete(a.on, held.on)
	}
}

// has reports whether a Service has the instance on a load balancer.
func (a *attached) has(loadBalancer, id string) bool {
	services := a.on[loadBalancer]
	return services[id]+services[anyInstance] > 0
}

// saved is how many times fewer the instance is behind load balancers than it is a backend of Services.
func (a *attached) saved(id string) int {
	if id == anyInstance {
		return a.again[id]
	}
	return a.again[anyInstance] + a.again[id]
}

// times is how many times an instance is a backend for the quota of the cloud.
func (c *crowd) times(id string) int { return c.whole + c.of[id] - c.attached.saved(id) }

// timesWithout is the same without what another backend would be on a load balancer where the instance is one already.
func (c *crowd) timesWithout(loadBalancer string, each int, id string) int {
	if loadBalancer != "" && c.attached.has(loadBalancer, id) {
		return c.times(id) - each
	}
	return c.times(id)
}

// sharedOn returns the load balancer on which an instance counts once for all Services that share it, empty for none.
func sharedOn(product Product, svc *corev1.Service, balancer Balancer) string {
	if product.AttachedPerGroup || sharedBy(svc) == "" {
		return ""
	}
	return balancer.ID()
}

// mostAttached returns the instance that is most often a backend, and how many times it is one.
func (c *crowd) mostAttached() (instanceID string, times int) {
	times = c.times(anyInstance)
	for id := range c.of {
		if n := c.times(id); n > times || n == times && id < instanceID {
			instanceID, times = id, n
		}
	}
	return instanceID, times
}
