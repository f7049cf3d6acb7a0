package backend

import (
	"cmp"
	"math"
	"slices"
)

// Lack is which nodes other Services need that are backends as many times as the cloud lets them be. Services that have more nodes than
// they need give up such nodes one by one. If a Service lacks many, those with more than their share give up what is more. If a Service has
// no node, those give up one that have several.
//
// The zero value says that nobody lacks anything.
type Lack struct {
	// Times is how many times more an instance would become a backend, Leaving how many times it is one that a Service has given up and that
	// has not left yet.
	Times, Leaving func(instanceID string) int
	// Starving is how many of Times are for Services that have no node.
	Starving func(instanceID string) int
	// Spared returns what says of an instance how many times other Services that have it can spare it, or can do without it for one that has
	// no node.
	Spared func(starving bool) func(instanceID string) int
	// Stays reports whether an instance remains behind the load balancer of the Service without the Service, because another one on it has the
	// instance, too.
	Stays func(instanceID string) bool
	// Many says that a Service has fewer than half of the nodes that it needs.
	Many bool
	// Rests says that the Service has just given up a node. It is the turn of others.
	Rests bool
}

// free returns how many more times the cloud lets an instance become a backend than it is one of other Services. assumed says that a quota
// counts that may be larger.
func (c Crowd) free(instanceID string, assumed bool) int {
	most := math.MaxInt
	if c.Quota > 0 && (assumed || !c.Assumed) {
		most = c.Quota
	}
	if refused, ok := c.Refused[instanceID]; ok {
		most = min(most, refused)
	}
	return most - c.Attached(instanceID)
}

func (l Lack) times(instanceID string) int {
	if l.Times == nil {
		return 0
	}
	return l.Times(instanceID)
}

func (l Lack) starving(instanceID string) int {
	if l.Starving == nil {
		return 0
	}
	return l.Starving(instanceID)
}

// lacked returns how many times Services have to give an instance up that is a backend of this one, so that others can have it.
func (c Crowd) lacked(instanceID string) int {
	return c.missing(instanceID, c.Lack.times(instanceID))
}

// starved returns the same, so that others can have it that have no node.
func (c Crowd) starved(instanceID string) int {
	return c.missing(instanceID, c.Lack.starving(instanceID))
}

// missing returns how many times Services have to give an instance up that is a backend of this one, and that others would have so many
// times.
func (c Crowd) missing(instanceID string, times int) int {
	if times == 0 || c.Lack.Stays(instanceID) {
		return 0
	}
	return max(times-c.Lack.Leaving(instanceID)-max(c.free(instanceID, true)-c.Each, 0), 0)
}

// full reports whether the cloud would refuse the node, or another Service needs it more.
func (c *chooser) full(node *Node) bool {
	free := c.Crowd.free(node.InstanceID, true)
	switch {
	case !c.needy:
		free -= c.Crowd.Lack.times(node.InstanceID)
	case len(c.chosen) > 0:
		free -= c.Crowd.Lack.starving(node.InstanceID)
	}
	return free < c.Crowd.Each
}

// claim notes n nodes that the Service needs although they are full: those first that others can spare as many times as the Service needs,
// of these the ones with the fewest times left to wait for, so that the others give up the same nodes until one is free. A node of which
// others can spare too little comes last: what they give up would help nobody, and they would take it back. A Service without any node
// needs one that others can do without, where nobody can spare one.
func (c *chooser) claim(n int) {
	if n <= 0 {
		return
	}
	full := c.ranked(c.full)
	if c.Crowd.Lack.Spared != nil {
		ranks, spared, yielded := make(map[string]int, len(full)), c.Crowd.Lack.Spared(false), func(string) int { return 0 }
		if len(c.chosen) == 0 {
			yielded = c.Crowd.Lack.Spared(true)
		}
		for _, node := range full {
			ranks[node.InstanceID] = c.claimRank(node.InstanceID, spared(node.InstanceID), yielded(node.InstanceID))
		}
		slices.SortStableFunc(full, func(a, b newcomer) int { return cmp.Compare(ranks[a.InstanceID], ranks[b.InstanceID]) })
	}
	for _, node := range full[:min(n, len(full))] {
		c.lacking = append(c.lacking, node.InstanceID)
	}
	if len(c.chosen) == 0 {
		c.starving = c.lacking[:min(len(c.lacking), 1)]
	}
}

// claimRank orders nodes that are full, of which others can spare one so many times, or do without it. The first one is the smallest.
func (c *chooser) claimRank(id string, spared, yielded int) int {
	missing := c.Crowd.Each - max(c.Crowd.free(id, true), 0)
	switch {
	case spared >= missing:
		return missing
	case yielded >= missing:
		return c.Crowd.Each + missing
	case spared == 0:
		return 2*c.Crowd.Each + 1
	}
	return 2*c.Crowd.Each + 2
}

// giveUp lets the node leave that others lack most, if the Service has more nodes than it needs, or another node that nobody lacks can take
// its place. For a Service that has no node, one leaves of several. A group that has not got all nodes yet may need this one.
func (c *chooser) giveUp() bool {
	if c.Room.ours < c.registered*c.Room.Groups {
		return false
	}
	at := c.mostLacked(c.Crowd.starved, func(string) bool { return true })
	starved := at >= 0
	if !starved && !c.needy {
		at = c.mostLacked(c.Crowd.lacked, c.spares)
	}
	if at < 0 {
		return false
	}
	if c.Crowd.Lack.Rests {
		c.rests = true
		return false
	}
	if len(c.chosen) > c.span.least {
		c.leave(at)
		return true
	}
	var others []newcomer
	if c.moves() {
		others = c.newcomers()
	}
	if len(others) == 0 && (!starved || len(c.chosen) == 1) {
		return false
	}
	c.leave(at)
	if len(others) > 0 {
		c.take(others[0].Node)
	}
	return true
}

// moves reports whether another node can take the place of one before that leaves.
func (c *chooser) moves() bool {
	return c.Room.HasSpare(c.registered) && slices.ContainsFunc(c.nodes, func(node *Node) bool {
		return !c.has.Has(node.InstanceID) && !c.full(node)
	})
}

// mostLacked returns the index of the chosen node that others lack most, of zones that have some to spare, -1 for none.
func (c *chooser) mostLacked(times func(instanceID string) int, spares func(zone string) bool) int {
	at, most := -1, 0
	for i, node := range c.chosen {
		if n := times(node.InstanceID); n > most && spares(node.Zone) {
			at, most = i, n
		}
	}
	return at
}

// spares reports whether a zone has more nodes than it needs.
func (c *chooser) spares(name string) bool {
	z := c.zones[name]
	return z.chosen > min(zoneNodes, z.nodes, c.span.least/len(c.zones))
}

// lackedFirst orders nodes that others lack before those that nobody does.
func (c *chooser) lackedFirst(node *Node) int {
	return min(c.Crowd.lacked(node.InstanceID), 1)
}
