package backend

import (
	"math"
	"slices"
)

// A node that is a backend less often than the light part of the mean takes the place of another one, and one that is a backend more often
// than the heavy part of it gives its place to another one. Each Service has parts of its own between two bounds: with each node that comes
// or goes the mean changes, and few Services at a time find that a node has become light or heavy.
const (
	lightFrom, lightTo = 0.6, 0.85
	heavyFrom, heavyTo = 1.2, 1.28
)

// farOverMean is how many times the mean a node is a backend that does not wait until drift is detected to give further places to other
// nodes.
const farOverMean = 1.5

// shift lets one node take the place of another one: a node of a zone that has too few, or one that is a backend much less often. Where the
// load balancer has no room for both, the other one leaves first, if it is certain that the next choice does not take the same one again.
// The last one leaves for none: without any node, all servers would stay as they are, and a new group would get none.
func (c *chooser) shift() {
	part := hashFraction(string(c.Service), "shift")
	light, heavy := c.mean*(lightFrom+part*(lightTo-lightFrom)), c.mean*(heavyFrom+part*(heavyTo-heavyFrom))
	each := float64(c.Crowd.Each)
	overloaded := slices.ContainsFunc(c.chosen, func(node *Node) bool { return c.load(node)+each > heavy })
	if !overloaded && !c.lacksZone() && float64(c.Crowd.Least(c.nodes))+each > light {
		return
	}
	spare := c.Room.HasSpare(c.registered)
	if !spare && len(c.chosen) == 1 {
		return
	}
	for _, node := range c.newcomers() {
		i := c.replaced(node, light, heavy)
		if i < 0 || !spare && !c.follows(node, c.chosen[i]) {
			continue
		}
		c.rests = c.load(c.chosen[i])+each > max(c.mean+1, farOverMean*c.mean) // there may be more of these
		c.leave(i)
		if spare {
			c.take(node.Node)
		}
		return
	}
}

// replaced returns the index of the chosen node whose place a newcomer may take, -1 for none.
func (c *chooser) replaced(node newcomer, light, heavy float64) int {
	each := float64(c.Crowd.Each)
	switch after := node.load + each; {
	case c.lacks(node):
		return c.heaviest(node.Zone, -1)
	case after <= light:
		return c.heaviest(node.Zone, max(c.mean-each, node.load))
	// A mean is seldom a whole number, as loads are: where all others are next to it, nobody would take the place of one that is heavy.
	case after <= math.Ceil(c.mean):
		return c.heaviest(node.Zone, max(heavy-each, node.load))
	}
	return -1
}

// follows reports whether the next choice takes a newcomer, or another one like it, rather than the chosen node that has left for it.
func (c *chooser) follows(node newcomer, left *Node) bool {
	return c.lacks(node) || node.light && c.load(left)+float64(c.Crowd.Each) > c.bound
}

func (c *chooser) lacksZone() bool {
	for _, z := range c.zones {
		if z.chosen < z.least {
			return true
		}
	}
	return false
}

// heaviest returns the index of the chosen node that makes room for one of a zone: that which is a backend of others most often, and more
// often than least; of another zone where least is negative, because the zone has too few. It returns -1 for none.
func (c *chooser) heaviest(zone string, least float64) int {
	at := -1
	for i, have := range c.chosen {
		z := c.zones[have.Zone]
		if have.Zone == zone && least < 0 || have.Zone != zone && z.chosen <= z.least || c.load(have) <= least {
			continue
		}
		if at < 0 || c.load(have) > c.load(c.chosen[at]) {
			at = i
		}
	}
	return at
}
