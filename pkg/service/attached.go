package service

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
