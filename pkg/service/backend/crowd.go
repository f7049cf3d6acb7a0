package backend

// Crowd is what the Services of a product make of the nodes together.
type Crowd struct {
	// Quota is how many times an instance can be a backend, 0 for any number.
	Quota int
	// Shares is the same on average of the nodes, see [Shares], which is what the Services share. 0 is Quota.
	Shares int
	// Refused is the same of instances that the cloud refused more.
	Refused map[string]int
	// Units is how many times each node would be one if every Service had all nodes, Each is how many of them are of this Service.
	Units, Each int
	// Total is how many times all nodes are backends of the other Services, Load how many times one is.
	Total int
	Load  func(instanceID string) int
	// Attached is how many times one is a backend of them for the quota: a load balancer that Services share counts once.
	Attached func(instanceID string) int
	// Least returns the least load of nodes.
	Least func(nodes []*Node) int
	// Settled says that it is known what every Service has. Before that, nothing is taken from any Service for the sake of others.
	Settled bool
	// Soon says that a new process will know that soon, and that the Service has had a load balancer before.
	Soon bool
	// Sure says that no instance becomes a backend too many times, whichever nodes the Services choose.
	Sure bool
	// Assumed says that the cloud may let instances be backends more than Quota times: nobody has said so, and no refusal has shown it.
	Assumed bool
	// Lack is what other Services lack.
	Lack Lack
}

// fits reports whether every Service may have all nodes.
func (c Crowd) fits() bool { return c.Quota == 0 || c.Units <= c.shares() }

func (c Crowd) shares() int {
	if c.Shares > 0 {
		return c.Shares
	}
	return c.Quota
}

// Shares returns how many times nodes can be backends on average as far as the Services share that: as many as a quota allows, or less
// where the cloud has refused more and the first shares of all of them are not to be had. units is [Crowd.Units]. A few nodes that somebody
// else uses do not have all Services give nodes up: the mean is rounded up.
func Shares(nodes []*Node, most, units int, refused map[string]int) int {
	if most == 0 || len(refused) == 0 || len(nodes) == 0 {
		return most
	}
	missing := 0
	for _, node := range nodes {
		if has, ok := refused[node.InstanceID]; ok {
			missing += max(most-has, 0)
		}
	}
	if mean := most - missing/len(nodes); float64(mean) < firstShare*float64(min(most, units)) {
		return max(mean, 1)
	}
	return most
}

// Crowding is how much of the nodes each Service may have, as far as it depends on the Services.
type Crowding struct {
	// Crowded says that not every Service may have all nodes, Step is the larger the more Services there are.
	Crowded bool
	Step    int
}

// Crowding returns how much of the nodes each Service may have.
func (c Crowd) Crowding() Crowding {
	if c.fits() {
		return Crowding{}
	}
	return Crowding{true, stepAbove(c.shares(), c.Units)}
}
