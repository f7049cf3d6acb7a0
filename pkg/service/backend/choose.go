package backend

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Crowd is what the Services of a product make of the nodes together.
type Crowd struct {
	// Quota is how many times an instance can be a backend, 0 for any number.
	Quota int
	// Units is how many times each node would be one if every Service had all nodes, Each is how many of them are of this Service.
	Units, Each int
	// Total is how many times all nodes are backends of the other Services, Load how many times one is.
	Total int
	Load  func(instanceID string) int
	// Least returns the least load of nodes.
	Least func(nodes []*Node) int
	// Settled says that it is known what every Service has. Before that, nothing is taken from any Service for the sake of others.
	Settled bool
}

// fits reports whether every Service may have all nodes.
func (c Crowd) fits() bool { return c.Quota == 0 || c.Units <= c.Quota }

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
	return Crowding{true, stepAbove(c.Quota, c.Units)}
}

// Wish is what [Choose] depends on beside the nodes.
type Wish struct {
	Service types.UID
	Subset  Subset
	Room    Room
	Crowd   Crowd
}

// zoneNodes is how many nodes a Service has in each zone, as far as there are so many: one that fails, or is replaced, leaves two.
const zoneNodes = 3

const (
	// mostOverMean bounds how many times a node becomes a backend, compared with the mean of all nodes.
	mostOverMean = 1.2
	// lightOfMean is the part of the mean below which a node takes the place of another one that has more than the mean.
	lightOfMean = 0.85
)

// Choice is which backends a Service has where there are quotas.
type Choice struct {
	Room Room
	// Some says that not all nodes are backends of a Service with externalTrafficPolicy Cluster, but Nodes, which are sorted by name. Short is how many more there
	// would be if the cloud let further nodes become backends as many times.
	Some  bool
	Nodes []*Node
	Short int
	// Quota is how many times the cloud lets an instance be a backend.
	Quota int
}

// InstanceIDs returns the instances that may be backends by a choice, nil for those of all nodes of the cluster that may be backends at all.
func (c Choice) InstanceIDs(in Input) []string {
	nodes := c.Nodes
	switch {
	case in.Pods || in.Local:
		return []string{}
	case !c.Some && in.selector() == nil:
		return nil
	case !c.Some:
		nodes = in.candidates().ready
	}
	ids := make([]string, 0, len(nodes))
	for _, node := range nodes {
		ids = append(ids, node.InstanceID)
	}
	return ids
}

// Ready returns the nodes that may be backends and take traffic, by name.
func (in Input) Ready() []*Node { return in.candidates().ready }

// Choose returns those of the nodes that are backends of a Service with externalTrafficPolicy Cluster.
//
// A node that is a backend stays one. Those that come are chosen by their hash with the Service, weighted by how many times they can still become
// backends; each zone has some, and nodes that are backends much more often than others come last. The choice depends on nothing that a restart
// forgets.
func Choose(in Input, wish Wish) Choice {
	choice := Choice{Room: wish.Room, Quota: wish.Crowd.Quota}
	if wish.Subset == SubsetOff {
		choice.Room.Most = 0
	}
	if in.Pods || in.Local || wish.Subset == SubsetOff {
		return choice
	}
	all := in.candidates()
	if len(all.ready) == 0 {
		return choice
	}
	leaving := draining(all, &wish.Room)
	most := len(all.ready)
	if wish.Room.Most > 0 {
		most = max(wish.Room.Most-leaving, 1)
	}
	span := spanOf(wish.Subset, len(all.ready), most, wish.Crowd, fraction(string(wish.Service)))
	if span.low >= len(all.ready) {
		return choice
	}
	c := newChooser(all.ready, wish, span)
	c.lost -= leaving
	c.choose(span)
	if len(c.chosen) == len(all.ready) {
		return choice
	}
	slices.SortFunc(c.chosen, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	choice.Some, choice.Nodes, choice.Short = true, c.chosen, max(span.low-len(c.chosen), 0)
	return choice
}

// draining counts the backends that stay for the connections that they have.
func draining(all *candidates, room *Room) int {
	if len(all.leaving)+len(all.dead) == 0 {
		return 0
	}
	present := room.Instances()
	n := 0
	for _, nodes := range [][]*Node{all.leaving, all.dead} {
		for _, node := range nodes {
			if present.Has(node.InstanceID) {
				n++
			}
		}
	}
	return n
}

// chooser is a choice that is being made.
type chooser struct {
	Wish
	nodes  []*Node
	chosen []*Node
	has    sets.Set[string]
	// lost is how many backends have left since the last choice.
	lost  int
	zones map[string]zone
	// bound is how many times a node should be a backend at most, mean how many times the nodes are one on average.
	bound, mean float64
}

// zone counts the nodes of a zone, and how many of them are chosen; least is how many should be.
type zone struct{ nodes, chosen, least int }

func newChooser(nodes []*Node, wish Wish, span span) *chooser {
	c := &chooser{Wish: wish, nodes: nodes, has: sets.New[string](), zones: map[string]zone{}}
	present := wish.Room.Instances()
	for _, node := range nodes {
		z := c.zones[node.Zone]
		z.nodes++
		if present.Has(node.InstanceID) {
			c.chosen = append(c.chosen, node)
			c.has.Insert(node.InstanceID)
			z.chosen++
		}
		c.zones[node.Zone] = z
	}
	c.lost = len(present) - len(c.chosen)
	size := span.wants(len(c.chosen))
	for name, z := range c.zones {
		z.least = min(zoneNodes, z.nodes, size/len(c.zones))
		c.zones[name] = z
	}
	c.mean = float64(wish.Crowd.Total+size*wish.Crowd.Each) / float64(len(nodes))
	c.bound = max(math.Ceil(c.mean), mostOverMean*c.mean)
	return c
}

// choose makes as few changes as possible. Where the number of nodes is right, at most one changes its place, for a node of a zone that has too few, or
// one that is hardly ever a backend.
func (c *chooser) choose(span span) {
	have := len(c.chosen)
	switch wanted := span.wants(have); {
	case have < wanted:
		c.add(min(wanted+min(c.lost, span.high-wanted), span.high) - have)
	case have > wanted && (c.Crowd.Settled || have > c.Room.Most && c.Room.Most > 0 || c.Subset != SubsetAuto):
		c.drop(have - wanted)
	case c.lost > 0:
		c.add(min(have+c.lost, span.high) - have)
	case have == wanted && c.Crowd.Settled:
		c.shift()
	}
}

// load is how many times a node is a backend of other Services.
func (c *chooser) load(node *Node) float64 { return float64(c.Crowd.Load(node.InstanceID)) }

// light reports whether the node may become a backend of the Service without being one too often.
func (c *chooser) light(node *Node) bool { return c.load(node)+float64(c.Crowd.Each) <= c.bound }

// full reports whether the cloud would refuse the node.
func (c *chooser) full(node *Node) bool {
	return c.Crowd.Quota > 0 && c.Crowd.Load(node.InstanceID)+c.Crowd.Each > c.Crowd.Quota
}

// newcomer is a node that may become a backend.
type newcomer struct {
	*Node
	load, score float64
	light       bool
}

// newcomers returns the nodes that may become backends, the best first: by their score, and those that are backends too often at the end.
func (c *chooser) newcomers() []newcomer {
	var found []newcomer
	for _, node := range c.nodes {
		if c.has.Has(node.InstanceID) || c.full(node) {
			continue
		}
		found = append(found, newcomer{node, c.load(node), c.score(node), c.light(node)})
	}
	slices.SortFunc(found, func(a, b newcomer) int {
		switch {
		case a.light != b.light && a.light:
			return -1
		case a.light != b.light:
			return 1
		case !a.light && a.load != b.load:
			return cmp.Compare(a.load, b.load)
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// add chooses nodes: first those of zones that have too few.
func (c *chooser) add(n int) {
	if n <= 0 {
		return
	}
	best := c.newcomers()
	best = slices.DeleteFunc(best, func(node newcomer) bool {
		z := c.zones[node.Zone]
		if n == 0 || z.chosen >= z.least || !node.light {
			return false
		}
		c.take(node.Node)
		n--
		return true
	})
	for _, node := range best[:min(n, len(best))] {
		c.take(node.Node)
	}
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
		return cmp.Or(cmp.Compare(c.load(a), c.load(b)), cmp.Compare(scores[b.InstanceID], scores[a.InstanceID]), cmp.Compare(a.Name, b.Name))
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

// shift lets one node take the place of another one: a node of a zone that has too few, or one that is a backend much less often than the other.
func (c *chooser) shift() {
	if !c.lacksZone() && float64(c.Crowd.Least(c.nodes)+c.Crowd.Each) > lightOfMean*c.mean {
		return
	}
	for _, node := range c.newcomers() {
		z := c.zones[node.Zone]
		lacks := z.chosen < z.least && node.light
		if !lacks && node.load+float64(c.Crowd.Each) > lightOfMean*c.mean {
			continue
		}
		if i := c.weighsMost(node, lacks); i >= 0 {
			c.leave(i)
			c.take(node.Node)
			return
		}
	}
}

func (c *chooser) lacksZone() bool {
	for _, z := range c.zones {
		if z.chosen < z.least {
			return true
		}
	}
	return false
}

// weighsMost returns the index of the chosen node that makes room for another one: that which is a backend most often, and, unless the zone of the
// other one has too few, so much more often that the change evens something out. It returns -1 for none.
func (c *chooser) weighsMost(node newcomer, lacks bool) int {
	at := -1
	for i, have := range c.chosen {
		z := c.zones[have.Zone]
		switch {
		case have.Zone != node.Zone && z.chosen <= z.least:
		case !lacks && (c.load(have)+float64(c.Crowd.Each) <= c.mean || c.load(have) <= node.load):
		case at < 0 || c.load(have) > c.load(c.chosen[at]):
			at = i
		}
	}
	return at
}

// score is the weighted rendezvous hash of the Service and a node: among nodes that can become backends equally often each is as likely to be the
// best as any other, and the order of two nodes depends on no third one.
func (c *chooser) score(node *Node) float64 {
	weight := 1.0
	if c.Crowd.Quota > 0 {
		weight = max(1, float64(c.Crowd.Quota)-c.load(node))
	}
	return -weight / math.Log(fraction(string(c.Service), node.InstanceID))
}

// fraction returns a number between 0 and 1, without either, that depends on texts only.
func fraction(texts ...string) float64 {
	sum := fnv.New64a()
	for _, text := range texts {
		_, _ = io.WriteString(sum, text+"/") // never fails
	}
	mixed := sum.Sum64()
	mixed ^= mixed >> 33 // the last bytes of a text hardly move the first bits of its sum
	mixed *= 0xff51afd7ed558ccd
	mixed ^= mixed >> 33
	mixed *= 0xc4ceb9fe1a85ec53
	mixed ^= mixed >> 33
	return (float64(mixed>>11) + 0.5) / (1 << 53)
}
