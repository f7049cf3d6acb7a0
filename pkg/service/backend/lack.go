package backend

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Lack is which nodes other Services need that are backends as many times as the cloud lets them be. Services that have more nodes than they need give up such
// nodes one by one. If a Service lacks many, those with more than their share give up what is more.
//
// The zero value says that nobody lacks anything.
type Lack struct {
	// Times is how many times more an instance would become a backend, Leaving how many times it is one that a Service has given up and that has not left yet.
	Times, Leaving func(instanceID string) int
	// Spared returns what says of an instance how many times other Services that have it can spare it.
	Spared func() func(instanceID string) int
	// Stays reports whether an instance remains behind the load balancer of the Service without the Service, because another one on it has the instance, too.
	Stays func(instanceID string) bool
	// Many says that a Service has fewer than half of the nodes that it needs.
	Many bool
	// Rests says that the Service has just given up a node. It is the turn of others.
	Rests bool
}

// free returns how many more times the cloud lets an instance become a backend than it is one of other Services. assumed says that a quota counts that may be larger.
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

// lacked returns how many times Services have to give an instance up that is a backend of this one, so that others can have it.
func (c Crowd) lacked(instanceID string) int {
	times := c.Lack.times(instanceID)
	if times == 0 || c.Lack.Stays(instanceID) {
		return 0
	}
	return max(times-c.Lack.Leaving(instanceID)-max(c.free(instanceID, true)-c.Each, 0), 0)
}

// full reports whether the cloud would refuse the node, or another Service needs it more.
func (c *chooser) full(node *Node) bool {
	free := c.Crowd.free(node.InstanceID, true)
	if !c.needy {
		free -= c.Crowd.Lack.times(node.InstanceID)
	}
	return free < c.Crowd.Each
}

// claim notes n nodes that the Service needs although they are full: those first that others can spare as many times as the Service needs, of these the ones with the
// fewest times left to wait for, so that the others give up the same nodes until one is free. A node of which others can spare too little comes last: what they give up
// would help nobody, and they would take it back.
func (c *chooser) claim(n int) {
	if n <= 0 {
		return
	}
	full := c.ranked(c.full)
	if c.Crowd.Lack.Spared != nil {
		ranks, spared := make(map[string]int, len(full)), c.Crowd.Lack.Spared()
		for _, node := range full {
			ranks[node.InstanceID] = c.claimRank(node.InstanceID, spared(node.InstanceID))
		}
		slices.SortStableFunc(full, func(a, b newcomer) int { return cmp.Compare(ranks[a.InstanceID], ranks[b.InstanceID]) })
	}
	for _, node := range full[:min(n, len(full))] {
		c.lacking = append(c.lacking, node.InstanceID)
	}
}

// claimRank orders nodes that are full, of which others can spare one so many times. The first one is the smallest.
func (c *chooser) claimRank(id string, spared int) int {
	missing := c.Crowd.Each - max(c.Crowd.free(id, true), 0)
	switch {
	case spared >= missing:
		return missing
	case spared == 0:
		return c.Crowd.Each + 1
	}
	return c.Crowd.Each + 2
}

// giveUp lets the node leave that others lack most, if the Service has more nodes than it needs, or another node that nobody lacks can take its place. A group that
// has not got all nodes yet may need this one.
func (c *chooser) giveUp() bool {
	if c.needy || c.Room.ours < c.registered*c.Room.Groups {
		return false
	}
	at, most := -1, 0
	for i, node := range c.chosen {
		if times := c.Crowd.lacked(node.InstanceID); times > most && c.spares(node.Zone) {
			at, most = i, times
		}
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
	others := c.newcomers()
	if len(others) == 0 || !c.Room.HasSpare() {
		return false
	}
	c.leave(at)
	c.take(others[0].Node)
	return true
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

// chooseLocal leaves out those nodes of a Service with externalTrafficPolicy Local that cannot become backends. Whether the cloud refuses more than an assumed quota,
// only it can say: one node at a time finds out. While it will be known soon what every Service has, a Service that serves waits for that.
func (in Input) chooseLocal(wish Wish, choice Choice) Choice {
	crowd, present, nodes := wish.Crowd, wish.Room.Instances(), in.localNodes()
	choice.Without = sets.New[string]()
	serves := slices.ContainsFunc(nodes, func(node *Node) bool { return present.Has(node.InstanceID) })
	soon := crowd.Soon && !crowd.Settled && !crowd.Sure && (serves || present.Len() == 0)
	tries := false
	for _, node := range nodes {
		switch id := node.InstanceID; {
		case present.Has(id):
			choice.Nodes = append(choice.Nodes, node)
			continue
		case soon:
			choice.Waits = true
		case crowd.free(id, true) >= crowd.Each:
			choice.Nodes = append(choice.Nodes, node)
			continue
		case !tries && crowd.free(id, false) >= crowd.Each:
			tries, choice.Nodes = true, append(choice.Nodes, node)
			continue
		default:
			choice.Lacking = append(choice.Lacking, id)
		}
		choice.Without.Insert(node.InstanceID)
	}
	if most := wish.Room.Most; most > 0 {
		choice.Lacking = choice.Lacking[:max(min(len(choice.Lacking), most-len(choice.Nodes)), 0)]
	}
	choice.Misses, choice.LacksMany = len(choice.Lacking) > 0, len(choice.Nodes) < len(choice.Lacking)
	return choice
}

// localNodes returns the nodes on which pods of a Service with externalTrafficPolicy Local run, by name.
func (in Input) localNodes() []*Node {
	names := sets.New[string]()
	for _, slice := range in.Slices {
		if !in.Counts(slice) {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.NodeName != nil && stateOf(endpoint) == endpointReady {
				names.Insert(*endpoint.NodeName)
			}
		}
	}
	var found []*Node
	for _, node := range in.candidates().all {
		if names.Has(node.Name) && !node.leaves(in.cordonedLeave()) {
			found = append(found, node)
		}
	}
	return found
}
