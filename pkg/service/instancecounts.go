package service

// instanceCounts are how many times instances are backends for the quota of the cloud. An instance is behind a load balancer once, however
// many of the Services that share it have the instance. The zero value is empty.
type instanceCounts struct {
	of map[string]int
	// on counts the Services that have an instance, by load balancers that several of them share.
	on map[string]map[string]int
}

// addUse notes that a Service has an instance as a backend so many times, by 1, or has it no more, by -1. on is the load balancer that the
// Service shares, empty for one of its own.
func (c *instanceCounts) addUse(on, id string, each, by int) {
	if c.of == nil {
		c.of, c.on = map[string]int{}, map[string]map[string]int{}
	}
	if on != "" {
		services := c.on[on]
		if services == nil {
			services = map[string]int{}
			c.on[on] = services
		}
		before := services[id]
		if services[id] += by; services[id] == 0 {
			delete(services, id)
		}
		if len(services) == 0 {
			delete(c.on, on)
		}
		if before+min(by, 0) > 0 { // another Service has it
			return
		}
	}
	if c.of[id] += by * each; c.of[id] == 0 {
		delete(c.of, id)
	}
}

// usesByOthers is how many times an instance is a backend beside that of a Service which does not count. Where it is one on the load
// balancer that the Service shares, it costs the Service nothing.
func (c *instanceCounts) usesByOthers(on, id string, each int) int {
	if on != "" && c.on[on][id] > 0 {
		return c.of[id] - each
	}
	return c.of[id]
}

// mostUsed returns the instance that is most often a backend, and how many times it is one.
func (c *instanceCounts) mostUsed() (instanceID string, times int) {
	for id, n := range c.of {
		if n > times || n == times && id < instanceID {
			instanceID, times = id, n
		}
	}
	return instanceID, times
}
