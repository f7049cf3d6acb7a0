package backend

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Subset says how many of the nodes are backends of a Service with externalTrafficPolicy Cluster: [SubsetAuto], [SubsetOff], or a number
// of nodes from 1.
type Subset int

// The values of [Subset] that are no numbers.
const (
	// SubsetAuto is all nodes while they fit the quotas of the cloud, else as many as fit. It is the default.
	SubsetAuto Subset = 0
	// SubsetOff is all nodes, also where the cloud refuses some of them.
	SubsetOff Subset = -1
)

// SubsetPattern is how a [Subset] is written.
const SubsetPattern = `auto|off|[1-9]\d{0,3}`

// maxSubset is the largest number that [SubsetPattern] matches.
const maxSubset = 9999

// ParseSubset reads a [Subset].
func ParseSubset(text string) (Subset, bool) {
	switch text {
	case "auto":
		return SubsetAuto, true
	case "off":
		return SubsetOff, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSubset || strconv.Itoa(n) != text { // "+7" and "007" do not match [SubsetPattern]
		return SubsetAuto, false
	}
	return Subset(n), true
}

// String returns the text that [ParseSubset] reads.
func (s Subset) String() string {
	switch s {
	case SubsetAuto:
		return "auto"
	case SubsetOff:
		return "off"
	}
	return strconv.Itoa(int(s))
}

const (
	// zoneNodes is how many nodes a Service has in each zone, as far as there are so many: one that fails, or is replaced, leaves two.
	zoneNodes = 3
	// lightPart of the mean is how many times a node is a backend at most that takes the places of others: one that joined, mostly.
	lightPart = 0.85
	// heavyPart of the mean is how many times a node is a backend that gets further Services only where no other node is left.
	heavyPart = 1.15
	// zonePart is the same for the sake of a zone that has too few. A node that is a backend more often is relieved.
	zonePart = 1.3
)

// ChoiceInput is what [Choose] depends on beside the nodes.
type ChoiceInput struct {
	Service types.UID
	Subset  Subset
	Room    Room
	Use     Use
}

// Use is how many times the instances are backends of the other Services of the product.
type Use struct {
	// Quota is how many times an instance can be a backend, 0 for any number. With Assumed it may be larger: nobody has said so.
	Quota   int
	Assumed bool
	// Share is how many nodes each load balancer, or server group, is to have, see [ShareOf].
	Share float64
	// Each is how many times an instance counts that is a backend of this Service.
	Each int
	// Load is how many of the Services an instance is to be a backend of, each counted as often as it counts for the quota. Times is how many
	// times it is, or is about to be, one for the quota: on a load balancer that Services share it counts once. Wanted is how many times it
	// would be one if there were no quota.
	Load, Times, Wanted func(instanceID string) int
	// Kept is how many times it is one of Services that do not give it up, whatever others need. Nil is never.
	Kept func(instanceID string) int
	// Refused is how many times instances can be backends to which the cloud refused more.
	Refused map[string]int
	// Scarce says that another Service has too few nodes: those that have more than their share give some up.
	Scarce bool
	// Known says that it is known what every Service has, Fits that no instance becomes a backend too many times, whichever nodes the Services
	// choose.
	Known, Fits bool
}

// mostUses returns how many times an instance can be a backend.
func (u *Use) mostUses(instanceID string) int {
	most := math.MaxInt
	if u.Quota > 0 {
		most = u.Quota
	}
	if times, ok := u.Refused[instanceID]; ok {
		most = min(most, times)
	}
	return most
}

// isFull reports whether the cloud would refuse an instance.
func (u *Use) isFull(instanceID string) bool {
	return u.Times(instanceID)+u.Each > u.mostUses(instanceID)
}

// frees reports whether there is room on an instance once all Services have given it up that can.
func (u *Use) frees(instanceID string) bool {
	return u.Kept == nil || u.Kept(instanceID)+u.Each <= u.mostUses(instanceID)
}

// isOverused reports whether an instance that the Service has is wanted more often than it can be a backend. A quota that is only assumed
// takes nothing away from anybody before the cloud has refused the instance.
func (u *Use) isOverused(instanceID string) bool {
	if _, refused := u.Refused[instanceID]; u.Assumed && !refused {
		return false
	}
	return u.Wanted(instanceID)+u.Each > u.mostUses(instanceID)
}

// subset is the nodes of a Service that are being chosen.
type subset struct {
	*ChoiceInput
	size  size
	nodes []candidate
	zones map[string]zone
	// have is how many are chosen, registered how many instances the Service has now, lost those of them that take no traffic any more, and
	// free how many more it may have before others have left.
	have, registered, lost, free int
	// mean is how many times the nodes are backends on average.
	mean float64
	// claimed are instances that the Service needs and that are full.
	claimed []string
}

// candidate is a node with how many times it is a backend of other Services.
type candidate struct {
	*Node
	load   int
	chosen bool
	score  float64
}

// zone counts the nodes of a zone that are chosen; least is how many should be.
type zone struct{ chosen, least int }

func newSubset(of *NodeSet, all *candidates, wanted *ChoiceInput, size size, draining int) *subset {
	s := &subset{ChoiceInput: wanted, size: size, nodes: make([]candidate, len(all.ready)), zones: make(map[string]zone, len(all.zones))}
	present := wanted.Room.Instances()
	s.registered = len(present)
	total := 0
	for i, node := range all.ready {
		s.nodes[i] = candidate{Node: node, load: wanted.Use.Load(node.InstanceID)}
		total += s.nodes[i].load
	}
	for name, nodes := range all.zones {
		s.zones[name] = zone{least: min(zoneNodes, nodes, size.first/len(all.zones))}
	}
	s.free = math.MaxInt
	for id := range present {
		if node := of.byID[id]; node != nil {
			if at, ok := slices.BinarySearchFunc(all.ready, node, byName); ok {
				s.takeNode(at)
			}
		}
	}
	s.lost = s.registered - s.have - draining
	if wanted.Room.Most > 0 && !wanted.Room.Swaps {
		s.free = wanted.Room.Most - s.registered
		if s.have == 0 { // all that the Service has are gone: they would stay rather than leave nothing
			s.free = max(s.free, 1)
		}
	}
	s.mean = float64(total+max(s.have, size.first)*wanted.Use.Each) / float64(len(s.nodes))
	return s
}

func byName(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }

func (s *subset) takeNode(at int) {
	s.free--
	s.putNode(at, true, 1)
}

func (s *subset) leaveNode(at int) { s.putNode(at, false, -1) }

func (s *subset) putNode(at int, chosen bool, by int) {
	s.nodes[at].chosen = chosen
	s.have += by
	z := s.zones[s.nodes[at].Zone]
	z.chosen += by
	s.zones[s.nodes[at].Zone] = z
}

// chooseNodes makes as few changes as possible: nodes that are backends stay, and others come and go only where there are too few or too
// many, where others need a node more, and where a node joined. A Service that has just lost nodes needs those that it has left.
func (s *subset) chooseNodes() {
	if s.lost == 0 {
		s.leaveOverused()
	}
	switch {
	case s.have == 0:
		s.addNodes(s.size.first)
	case s.have < s.size.low:
		s.addNodes(s.size.low - s.have)
	case s.have > s.size.most:
		s.dropNodes(s.have - s.size.most)
	case s.lost > 0:
	case s.isGenerous():
		s.dropNodes(1)
	case s.Use.Known: // a new process first knows of a part of the loads, beside which any node of its own looks full
		s.balanceNodes()
	}
}

// isGenerous reports whether the Service gives nodes up for others: one in each pass, until these have enough.
func (s *subset) isGenerous() bool { return s.Use.Scarce && s.have > s.size.high }

// leaveOverused gives nodes up that are wanted more often than they can be backends, except the last ones of a zone. So a Service gets in
// whose pods run on just these nodes, or that has no node.
func (s *subset) leaveOverused() {
	for i := range s.nodes {
		if node := &s.nodes[i]; node.chosen && s.Use.isOverused(node.InstanceID) && !s.keeps(node) {
			s.leaveNode(i)
		}
	}
}

// keeps reports whether a chosen node is one of the last ones of its zone.
func (s *subset) keeps(node *candidate) bool {
	return s.zones[node.Zone].chosen <= min(max(s.size.least/max(len(s.zones), 1), 1), zoneNodes)
}

// kept returns the instances that others do not get, whatever they need.
func (s *subset) kept() []string {
	var found []string
	for i := range s.nodes {
		if node := &s.nodes[i]; node.chosen && s.keeps(node) {
			found = append(found, node.InstanceID)
		}
	}
	return found
}

// addNodes chooses so many nodes: first those of zones that have too few.
func (s *subset) addNodes(n int) {
	n = min(n, s.free)
	if n <= 0 {
		return
	}
	best := s.rankNewcomers()
	for _, needed := range []bool{true, false} {
		for _, at := range best {
			if n > 0 && !s.nodes[at].chosen && (!needed || s.zoneNeeds(at)) {
				s.takeNode(at)
				n--
			}
		}
	}
	if s.have == 0 || s.Subset > 0 && s.have < s.size.least && math.IsInf(s.Use.Share, 1) {
		s.claimNodes(min(n, s.size.least-s.have, zoneNodes))
	}
}

// claimNodes has others give up so many nodes that are full, see [subset.leaveOverused]. They do so for a Service without any node: those
// keep one at least, and so claim none. They also do for one with a number of nodes where all others have all nodes: nobody gives up a share
// there, and the only nodes that are not full may be those that it has. Of a node that they keep too often there would never be enough room.
func (s *subset) claimNodes(n int) {
	full := s.rankCandidates(func(node *candidate) bool { return s.Use.isFull(node.InstanceID) && s.Use.frees(node.InstanceID) })
	if len(full) == 0 {
		full = s.rankCandidates(func(node *candidate) bool { return s.Use.isFull(node.InstanceID) })
	}
	for _, at := range full[:min(n, len(full))] {
		s.claimed = append(s.claimed, s.nodes[at].InstanceID)
	}
}

// zoneNeeds reports whether the zone of a node has too few. The first nodes of a zone do not get all Services.
func (s *subset) zoneNeeds(at int) bool {
	z := s.zones[s.nodes[at].Zone]
	return z.chosen < z.least && float64(s.nodes[at].load+s.Use.Each) <= max(s.mean+float64(s.Use.Each), zonePart*s.mean)
}

// rankNewcomers returns the nodes that may be chosen, the best first: by weighted rendezvous hashing of the Service and the instance. Among
// nodes that can become backends equally often each is as likely to be the best as any other, and the order of two nodes depends on no
// third one. Those that are backends too often come last.
func (s *subset) rankNewcomers() []int {
	needy := s.have == 0
	return s.rankCandidates(func(node *candidate) bool { return s.mayChoose(node.InstanceID, needy) })
}

// mayChoose reports whether an instance may be chosen. What others have given up is for those that have no node.
func (s *subset) mayChoose(id string, needy bool) bool {
	return !s.Use.isFull(id) && (needy || !s.Use.isOverused(id))
}

func (s *subset) rankCandidates(may func(*candidate) bool) []int {
	heavy := max(math.Ceil(s.mean), heavyPart*s.mean)
	var found []int
	for i := range s.nodes {
		if node := &s.nodes[i]; !node.chosen && may(node) {
			node.score = s.nodeScore(node)
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b int) int {
		x, y := &s.nodes[a], &s.nodes[b]
		over := func(n *candidate) int { return max(n.load+s.Use.Each-int(heavy), 0) }
		return cmp.Or(cmp.Compare(over(x), over(y)), cmp.Compare(y.score, x.score), cmp.Compare(x.Name, y.Name))
	})
	return found
}

// nodeScore is the larger the more likely a node is to be chosen.
func (s *subset) nodeScore(node *candidate) float64 {
	weight := 1.0
	if s.Use.Quota > 0 {
		weight = max(1, float64(s.Use.Quota-node.load))
	}
	return -weight / math.Log(hashFraction(string(s.Service), node.InstanceID))
}

// dropNodes gives up so many nodes, the fullest first, but none that its zone needs.
func (s *subset) dropNodes(n int) {
	for ; n > 0; n-- {
		at := s.fullestChosen(-1, func(z zone) bool { return z.chosen > z.least })
		if at < 0 {
			return
		}
		s.leaveNode(at)
	}
}

// fullestChosen returns the index of that chosen node which is a backend of others most often, and more often than least, of zones that can
// give one up; -1 for none.
func (s *subset) fullestChosen(least int, gives func(zone) bool) int {
	at := -1
	for i := range s.nodes {
		node := &s.nodes[i]
		if !node.chosen || node.load <= least || !gives(s.zones[node.Zone]) {
			continue
		}
		if at < 0 || node.load > s.nodes[at].load || node.load == s.nodes[at].load && s.nodeScore(node) < s.nodeScore(&s.nodes[at]) {
			at = i
		}
	}
	return at
}

// balanceNodes has nodes that are hardly ever backends take the places of the fullest ones: nodes that joined, and those of a zone that has
// too few. Which Services a node gets is decided by the hash, so that it gets about as many as the others have.
func (s *subset) balanceNodes() {
	part := float64(s.size.first) / float64(len(s.nodes))
	for i := range s.nodes {
		node := &s.nodes[i]
		if node.chosen || !s.mayChoose(node.InstanceID, false) {
			continue
		}
		light := float64(node.load+s.Use.Each) <= lightPart*s.mean
		if !s.zoneNeeds(i) && (!light || hashFraction(string(s.Service), node.InstanceID, "joins") >= part) {
			continue
		}
		s.joinNode(i)
	}
	s.relieveNode()
}

// relieveNode has one node that is a backend no more often than the mean take the place of one that is much more often: the hash alone does
// not relieve the nodes of a small cluster, nor those that joined first in a new zone.
func (s *subset) relieveNode() {
	much := max(zonePart*s.mean, s.mean+float64(s.Use.Each)) - float64(s.Use.Each)
	if s.fullestChosen(int(much), func(zone) bool { return true }) < 0 {
		return
	}
	isLight := func(node *candidate) bool {
		return float64(node.load+s.Use.Each) <= s.mean && s.mayChoose(node.InstanceID, false)
	}
	if light := s.rankCandidates(isLight); len(light) > 0 {
		s.joinNode(light[0])
	}
}

// joinNode has a node take the place of another one, or one more if the Service has fewer than a new one gets. Where the load balancer has
// no room for both, the other one leaves first, for the sake of a zone only: the next choice takes one of that.
func (s *subset) joinNode(at int) {
	node := &s.nodes[at]
	if s.have < s.size.first && s.free > 0 && !s.Room.unknown {
		s.takeNode(at)
		return
	}
	least, gives := max(node.load+s.Use.Each, int(s.mean)-s.Use.Each), func(z zone) bool { return z.chosen > z.least }
	if s.zoneNeeds(at) {
		least = -1
	}
	other := s.fullestChosen(least, gives)
	spare := s.Room.HasSpare(s.registered)
	if other < 0 || !spare && (!s.zoneNeeds(at) || s.have == 1) {
		return
	}
	s.leaveNode(other)
	if spare {
		s.takeNode(at)
	}
}

// chosenNodes returns the nodes, by name.
func (s *subset) chosenNodes() []*Node {
	found := make([]*Node, 0, s.have)
	for i := range s.nodes {
		if s.nodes[i].chosen {
			found = append(found, s.nodes[i].Node)
		}
	}
	return found
}

// hashFraction returns a number between 0 and 1, without either, that depends on texts only.
func hashFraction(texts ...string) float64 {
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
