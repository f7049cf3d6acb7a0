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
	// Sure says that no instance becomes a backend too many times, whichever nodes the Services choose.
	Sure bool
	// Assumed says that the cloud may let instances be backends more than Quota times.
	Assumed bool
	// Lack is what other Services lack.
	Lack Lack
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
	// mostForZone bounds the same for a node whose zone has too few.
	mostForZone = 1.3
	// A node that is a backend less often than the light part of the mean takes the place of another one, and one that is a backend more often than the
	// heavy part of it gives its place to another one. Each Service has parts of its own between two bounds: with each node that comes or goes the mean
	// changes, and few Services at a time find that a node has become light or heavy.
	lightFrom, lightTo = 0.6, 0.85
	heavyFrom, heavyTo = 1.2, 1.28
)

// Choice is which backends a Service has where there are quotas.
type Choice struct {
	Room Room
	// Some says that not all nodes are backends of a Service with externalTrafficPolicy Cluster, but Nodes, which are sorted by name. With Local, Nodes are those of
	// its pods that may be backends.
	Some  bool
	Nodes []*Node
	// Lacking are instances that the Service needs, and that the cloud does not let become backends once more. LacksMany says that it has fewer than half of what it
	// needs, Misses that it would have more nodes if it could.
	Lacking           []string
	LacksMany, Misses bool
	// Spares says that it has more nodes than it needs.
	Spares bool
	// Without are instances that a Service with externalTrafficPolicy Local leaves out for that reason.
	Without sets.Set[string]
	// GivesUp says that it gives up a node that another Service lacks, Rests that it may have to give up one later, Waits that it takes no further node until it is
	// known what every Service has.
	GivesUp, Rests, Waits bool
	// Quota is how many times the cloud lets an instance be a backend.
	Quota int
	// Firm says that the quota has no say in which nodes are backends.
	Firm bool
}

// InstanceIDs returns the instances that may be backends by a choice, nil for those of all nodes of the cluster that may be backends at all.
func (c Choice) InstanceIDs(in Input) []string {
	nodes := c.Nodes
	switch {
	case in.Pods:
		return []string{}
	case in.Local || c.Some:
	case in.selector() == nil:
		return nil
	default:
		nodes = in.candidates().ready
	}
	ids := make([]string, 0, len(nodes))
	for _, node := range nodes {
		ids = append(ids, node.InstanceID)
	}
	return ids
}

// UsesAllNodes reports whether the backends are nodes that no labels select.
func (in Input) UsesAllNodes() bool { return !in.Pods && in.selector() == nil }

// Ready returns the nodes that may be backends and take traffic, by name.
func (in Input) Ready() []*Node { return in.candidates().ready }

// Choose returns those of the nodes that are backends of a Service. With externalTrafficPolicy Local these are the nodes of its pods.
//
// With Cluster, a node that is a backend stays one. Those that come are chosen by their hash with the Service, weighted by how many times they can still become
// backends; each zone has some, and nodes that are backends much more often than others come last. A node that the cloud would refuse is left out. The choice
// depends on nothing that a restart forgets.
func Choose(in Input, wish Wish) Choice {
	room := wish.Room
	if wish.Subset == SubsetOff {
		room.Most = 0
	}
	firm := Choice{Room: room, Quota: wish.Crowd.Quota, Firm: true}
	switch {
	case in.Pods:
		return firm
	case in.Local:
		return in.chooseLocal(wish, firm)
	case wish.Subset == SubsetOff:
		return firm
	}
	choice := firm
	choice.Firm = false
	if all := in.candidates(); len(all.ready) > 0 {
		return in.chooseNodes(wish, all, choice)
	}
	return choice
}

// chooseNodes chooses the nodes of a Service with externalTrafficPolicy Cluster.
func (in Input) chooseNodes(wish Wish, all *candidates, choice Choice) Choice {
	leaving := draining(all, &wish.Room)
	most := len(all.ready)
	if wish.Room.Most > 0 {
		most = max(wish.Room.Most-leaving, 1)
	}
	span := spanOf(wish.Subset, len(all.ready), most, wish.Crowd, fraction(string(wish.Service)))
	if span.low >= len(all.ready) && wish.Crowd.Sure {
		choice.Spares = true
		return choice
	}
	c := newChooser(in.Nodes, all, wish, span)
	c.lost -= leaving
	c.choose()
	choice.Lacking, choice.LacksMany, choice.Misses = c.lacking, len(c.lacking) > 0 && 2*len(c.chosen) < span.least, len(c.chosen) < span.low
	choice.Spares = len(c.chosen) > span.least
	choice.GivesUp, choice.Rests, choice.Waits = c.givesUp, c.rests, c.waits
	if len(c.chosen) < len(all.ready) {
		slices.SortFunc(c.chosen, byName)
		choice.Some, choice.Nodes = true, c.chosen
	}
	return choice
}

func byName(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }

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
	// registered is how many backends there are, lost how many of them are nodes no more.
	registered, lost int
	span             span
	// lacking are the instances that are needed and cannot become backends, needy says that those that others lack may be taken.
	lacking        []string
	needy          bool
	givesUp, rests bool
	waits          bool
	zones          map[string]zone
	// mean is how many times the nodes are a backend on average, bound how many times one should be at most, zoneBound the same where a zone has too few.
	mean, bound, zoneBound float64
}

// zone counts the nodes of a zone, and how many of them are chosen; least is how many should be.
type zone struct{ nodes, chosen, least int }

func newChooser(of *NodeSet, all *candidates, wish Wish, span span) *chooser {
	c := &chooser{Wish: wish, nodes: all.ready, has: sets.New[string](), span: span, zones: make(map[string]zone, len(all.zones))}
	for name, nodes := range all.zones {
		c.zones[name] = zone{nodes: nodes}
	}
	present := wish.Room.Instances()
	for id := range present {
		if node := of.byID[id]; node != nil && among(all.ready, node) {
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
	c.mean = float64(wish.Crowd.Total+size*wish.Crowd.Each) / float64(len(c.nodes))
	c.bound, c.zoneBound = max(math.Ceil(c.mean), mostOverMean*c.mean), max(c.mean+1, mostForZone*c.mean)
	return c
}

// choose makes as few changes as possible. Where the number of nodes is right, at most one changes its place: one that another Service lacks leaves, or one
// comes for the sake of a zone that has too few, or because it is hardly ever a backend.
func (c *chooser) choose() {
	have := len(c.chosen)
	wanted := c.wants(have)
	c.needy, c.waits = have < c.span.least, have < wanted && c.mayBeRefused(have)
	switch {
	case c.waits:
		return
	case have < wanted:
		c.add(min(wanted+min(c.lost, c.span.high-wanted), c.span.high) - have)
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

// wants returns how many nodes the Service is to have. One that has more than its share keeps them until another one lacks many.
func (c *chooser) wants(have int) int {
	wanted := c.span.wants(have)
	fits, needed := c.Room.Most == 0 || have <= c.Room.Most, c.Crowd.Settled && c.Crowd.Lack.Many
	if have > wanted && c.Subset == SubsetAuto && fits && !needed {
		return have
	}
	return wanted
}

// mayBeRefused reports whether a further node may be one that the cloud refuses, because it is not known what every Service has. Without it, the Service has some all
// the same.
func (c *chooser) mayBeRefused(have int) bool {
	return !c.Crowd.Settled && !c.Crowd.Sure && have > 0 && (c.lost <= 0 || c.Subset == SubsetAuto && c.Crowd.fits())
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
		return cmp.Or(cmp.Compare(c.lackedFirst(a), c.lackedFirst(b)), cmp.Compare(c.load(a), c.load(b)), cmp.Compare(scores[b.InstanceID], scores[a.InstanceID]), cmp.Compare(a.Name, b.Name))
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

// shift lets one node take the place of another one: a node of a zone that has too few, or one that is a backend much less often. Where the load balancer has
// no room for both, the other one leaves first, if it is certain that the next choice does not take the same one again.
func (c *chooser) shift() {
	part := fraction(string(c.Service), "shift")
	light, heavy := c.mean*(lightFrom+part*(lightTo-lightFrom)), c.mean*(heavyFrom+part*(heavyTo-heavyFrom))
	each := float64(c.Crowd.Each)
	overloaded := slices.ContainsFunc(c.chosen, func(node *Node) bool { return c.load(node)+each > heavy })
	if !overloaded && !c.lacksZone() && float64(c.Crowd.Least(c.nodes))+each > light {
		return
	}
	spare := c.Room.HasSpare()
	for _, node := range c.newcomers() {
		i := c.replaced(node, light, heavy)
		if i < 0 || !spare && !c.follows(node, c.chosen[i]) {
			continue
		}
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
	least := heavy - each
	switch after := node.load + each; {
	case c.lacks(node):
		least = -1
	case after <= light:
		least = max(c.mean-each, node.load)
	case after > c.mean:
		return -1
	}
	return c.heaviest(node.Zone, least)
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

// heaviest returns the index of the chosen node that makes room for one of a zone: that which is a backend of others most often, and more often than least;
// of another zone where least is negative, because the zone has too few. It returns -1 for none.
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
