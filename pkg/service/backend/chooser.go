package backend

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// mostOverMean bounds how many times a node becomes a backend, compared with the mean of all nodes.
	mostOverMean = 1.2
	// mostForZone bounds the same for a node whose zone has too few.
	mostForZone = 1.3
)

// chooser is a choice that is being made.
type chooser struct {
	ChoiceInput
	nodes  []*Node
	chosen []*Node
	has    sets.Set[string]
	// registered is how many backends there are, lost how many of them are nodes no more.
	registered, lost int
	span             span
	// lacking are the instances that are needed and cannot become backends, starving those of them of which one is the first. needy says that
	// those that others lack may be taken.
	lacking        []string
	starving       []string
	needy          bool
	givesUp, rests bool
	waits          bool
	zones          map[string]zone
	// mean is how many times the nodes are a backend on average, bound how many times one should be at most, zoneBound the same where a zone
	// has too few.
	mean, bound, zoneBound float64
}

// zone counts the nodes of a zone, and how many of them are chosen; least is how many should be.
type zone struct{ nodes, chosen, least int }

func newChooser(of *NodeSet, all *candidates, wanted ChoiceInput, span span) *chooser {
	c := &chooser{ChoiceInput: wanted, nodes: all.ready, has: sets.New[string](), span: span, zones: make(map[string]zone, len(all.zones))}
	for name, nodes := range all.zones {
		c.zones[name] = zone{nodes: nodes}
	}
	present := wanted.Room.Instances()
	for id := range present {
		if node := of.byID[id]; node != nil && amongNodes(all.ready, node) {
			c.take(node)
		}
	}
	slices.SortFunc(c.chosen, byName)
	c.registered, c.lost = len(present), len(present)-len(c.chosen)
	size := span.wants(len(c.chosen))
	for name, z := range c.zones {
		z.least = min(zoneNodes, z.nodes, size/len(c.zones))
		c.zones[name] = z
	}
	c.mean = float64(wanted.Crowd.Total+size*wanted.Crowd.Each) / float64(len(c.nodes))
	c.bound, c.zoneBound = max(math.Ceil(c.mean), mostOverMean*c.mean), max(c.mean+1, mostForZone*c.mean)
	return c
}

// choose makes as few changes as possible. Where the number of nodes is right, at most one changes its place: one that another Service
// lacks leaves, or one comes for the sake of a zone that has too few, or because it is hardly ever a backend.
func (c *chooser) choose() {
	have := len(c.chosen)
	wanted := c.wants(have)
	c.needy, c.waits = have < c.span.least, have < wanted && c.mayBeRefused(have)
	switch {
	case c.waits:
		return
	case have < wanted:
		c.grow(have, c.aim(have, wanted)-have)
	case have > wanted:
		c.drop(have - wanted)
	case c.lost > 0:
		c.add(min(have+c.lost, c.span.high) - have)
	}
	if !c.Crowd.Settled || len(c.chosen) != have {
		return
	}
	if c.givesUp = c.giveUp(); !c.givesUp && have >= wanted && c.lost <= 0 {
		c.shift()
	}
}

// aim returns how many nodes a Service is to have that has fewer than wanted. One that has lost a node gets one in its place. One that has
// lost several at once gets more than it must have: in a storm it loses others before they are in, and would be left with the least that it
// may have.
func (c *chooser) aim(have, wanted int) int {
	if c.lost > 1 {
		return min(wanted+c.lost, c.span.high)
	}
	return max(wanted, min(have+c.lost, c.span.high))
}

// grow adds n nodes. A Service that asks for a number of them and has most of what it needs takes one at a time, beside those that replace
// others: what is free may be what others have just left for a node that has joined.
func (c *chooser) grow(have, n int) {
	paced := max(c.lost, 0) + 1
	if n <= paced || c.Subset == SubsetAuto || c.Crowd.fits() || 2*have < c.span.least {
		c.add(n)
		return
	}
	c.add(paced)
	c.rests = len(c.chosen) > have
}

// wants returns how many nodes the Service is to have. One that has more than its share keeps them until another one lacks many.
func (c *chooser) wants(have int) int {
	wanted := c.span.wants(have)
	fits, needed := c.Room.Most == 0 || have <= c.Room.Most, c.Crowd.Settled && c.Crowd.Lack.Many
	if have > wanted && c.Subset == SubsetAuto && fits && !needed {
		return have
	}
	return wanted
}

// mayBeRefused reports whether a further node may be one that the cloud refuses, because it is not known what every Service has. Without
// it, the Service has some all the same, or has had none before this process began. A node that is lost is replaced all the same, at the
// latest when the process is no longer new.
func (c *chooser) mayBeRefused(have int) bool {
	switch {
	case c.Crowd.Settled || c.Crowd.Sure:
		return false
	case have == 0:
		return c.Crowd.Soon && c.registered == 0
	}
	return c.lost <= 0 || c.Subset == SubsetAuto && c.Crowd.fits() && c.Crowd.Soon
}

// load is how many times a node is a backend of other Services.
func (c *chooser) load(node *Node) float64 { return float64(c.Crowd.Load(node.InstanceID)) }

// lacks reports whether the zone of the node has too few, and the node may become a backend all the same.
func (c *chooser) lacks(node newcomer) bool {
	z := c.zones[node.Zone]
	return z.chosen < z.least && node.load+float64(c.Crowd.Each) <= c.zoneBound
}

// add chooses nodes: first those of zones that have too few.
func (c *chooser) add(n int) {
	if c.Room.Most > 0 && !c.Room.Swaps {
		room := c.Room.Most - c.registered
		if len(c.chosen) == 0 {
			room = max(room, 1) // all that it has are gone: without one that takes their place, they would stay rather than leave nothing
		}
		n = min(n, room)
	}
	if n <= 0 {
		return
	}
	best := c.newcomers()
	best = slices.DeleteFunc(best, func(node newcomer) bool {
		if n == 0 || !c.lacks(node) {
			return false
		}
		c.take(node.Node)
		n--
		return true
	})
	for _, node := range best[:min(n, len(best))] {
		c.take(node.Node)
	}
	c.claim(min(n-len(best), c.span.least-len(c.chosen)))
}

func (c *chooser) take(node *Node) {
	c.chosen = append(c.chosen, node)
	c.has.Insert(node.InstanceID)
	z := c.zones[node.Zone]
	z.chosen++
	c.zones[node.Zone] = z
}

// drop gives nodes up, those first that are backends most often, but no zone more than it can spare.
func (c *chooser) drop(n int) {
	scores := make(map[string]float64, len(c.chosen))
	for _, node := range c.chosen {
		scores[node.InstanceID] = c.score(node)
	}
	slices.SortFunc(c.chosen, func(a, b *Node) int { // the best first
		return cmp.Or(cmp.Compare(c.lackedFirst(a), c.lackedFirst(b)), cmp.Compare(c.load(a), c.load(b)),
			cmp.Compare(scores[b.InstanceID], scores[a.InstanceID]), cmp.Compare(a.Name, b.Name))
	})
	for i := len(c.chosen) - 1; i >= 0 && n > 0; i-- {
		if z := c.zones[c.chosen[i].Zone]; z.chosen > z.least {
			c.leave(i)
			n--
		}
	}
}

func (c *chooser) leave(i int) {
	node := c.chosen[i]
	z := c.zones[node.Zone]
	z.chosen--
	c.zones[node.Zone] = z
	c.chosen = slices.Delete(c.chosen, i, i+1)
	c.has.Delete(node.InstanceID)
}
