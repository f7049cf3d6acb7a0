package backend

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// NodeSet is the nodes of a cluster, and what they are to all Services. After a change of one node every Service has a pass, and each
// would come to the same. Nobody may change it. nil has no nodes.
type NodeSet struct {
	// all are sorted by name.
	all []Node
	// virtual are the names of virtual nodes, unresolved those of nodes whose instance is not known yet.
	virtual    sets.Set[string]
	unresolved []string
	inDoubt    bool
	// twins name the Nodes whose instance another Node stands for, with that.
	twins []string
	// byID are the nodes by their instances.
	byID map[string]*Node
	// firstSilence is when the first node no longer counts as ready because its kubelet is silent, zero when all report.
	firstSilence time.Time

	// candidates are those of Services without the annotation backend-label.
	candidates map[candidatesKey]*candidates
}

// NewNodeSet returns a set of nodes.
func NewNodeSet(all []Node) *NodeSet {
	slices.SortFunc(all, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	s := &NodeSet{all: all, virtual: sets.New[string](), byID: make(map[string]*Node, len(all)), candidates: map[candidatesKey]*candidates{}}
	for i := range all {
		s.addNode(&all[i])
	}
	for _, policy := range []ControlPlanePolicy{ControlPlaneAuto, ControlPlaneAlways, ControlPlaneNever} {
		for _, cordonedLeave := range []bool{false, true} {
			s.candidates[candidatesKey{policy, cordonedLeave}] = newCandidates(eligibleNodes(all, policy), cordonedLeave)
		}
	}
	return s
}

func (s *NodeSet) addNode(node *Node) {
	if node.InstanceID != "" && node.TwinOf == "" {
		s.byID[node.InstanceID] = node
	}
	if node.Virtual {
		s.virtual.Insert(node.Name)
	}
	if node.Unresolved {
		s.unresolved = append(s.unresolved, node.Name)
	}
	if node.TwinOf != "" {
		s.twins = append(s.twins, fmt.Sprintf("%s (%s is older)", node.Name, node.TwinOf))
	}
	s.inDoubt = s.inDoubt || node.InDoubt
	if until := node.ReadyUntil; !until.IsZero() && (s.firstSilence.IsZero() || until.Before(s.firstSilence)) {
		s.firstSilence = until
	}
}

// instanceIDs returns the instances.
func (s *NodeSet) instanceIDs() sets.Set[string] {
	ids := sets.New[string]()
	for i := range s.all {
		if id := s.all[i].InstanceID; id != "" {
			ids.Insert(id)
		}
	}
	return ids
}

// HasInstance reports whether an instance is one of the nodes.
func (s *NodeSet) HasInstance(id string) bool {
	return s != nil && slices.ContainsFunc(s.all, func(n Node) bool { return n.InstanceID == id })
}

// Dead reports whether an instance counts as one that takes no traffic: it is none of the nodes, while each of them is known, or a node
// that is not ready.
func (s *NodeSet) Dead(instanceID string) bool {
	if s == nil {
		return false
	}
	if node := s.byID[instanceID]; node != nil {
		return !node.Ready
	}
	return !s.inDoubt
}

// Serves reports whether an instance is a node that works, may be a backend and is not about to go.
func (s *NodeSet) Serves(instanceID string) bool {
	if s == nil {
		return false
	}
	node := s.byID[instanceID]
	return node != nil && node.Ready && !node.Leaving && node.Candidate
}

// HasAddress reports whether an address is the InternalIP of one of the nodes.
func (s *NodeSet) HasAddress(address string) bool {
	return s != nil && slices.ContainsFunc(s.all, func(n Node) bool { return n.Address == address })
}

// IsOfOther reports whether an address is the InternalIP of a node with another name.
func (s *NodeSet) IsOfOther(address, name string) bool {
	return s != nil && slices.ContainsFunc(s.all, func(n Node) bool { return n.Address == address && n.Name != name })
}

// Unresolved returns the names of nodes that would be backends and whose instance is not known yet.
func (s *NodeSet) Unresolved() []string {
	if s == nil {
		return nil
	}
	return s.unresolved
}

// UntilSilence returns how long it takes until the first node no longer counts as ready because its kubelet is silent, 0
// when all report.
func (s *NodeSet) UntilSilence(now time.Time) time.Duration {
	if s == nil || s.firstSilence.IsZero() {
		return 0
	}
	return max(s.firstSilence.Sub(now), time.Second)
}

// nodeNamed returns a node, nil when there is none of that name.
func (s *NodeSet) nodeNamed(name string) *Node {
	if s == nil {
		return nil
	}
	at, ok := slices.BinarySearchFunc(s.all, name, func(node Node, name string) int { return cmp.Compare(node.Name, name) })
	if !ok {
		return nil
	}
	return &s.all[at]
}

// candidatesKey is what the candidates depend on beside the nodes.
type candidatesKey struct {
	policy ControlPlanePolicy
	// cordonedLeave says that a cordoned node takes no new connections.
	cordonedLeave bool
}

// candidates are the nodes that may be backends, sorted by name: all of them, and those that take traffic, that are about to go and do
// or do not work, and whose kubelets are silent.
type candidates struct {
	all, ready, leaving, dead, silent []*Node
	// zones are how many of those that take traffic are in each zone, ids their instances.
	zones map[string]int
	ids   []string
}

// hasNode reports whether a node may be a backend.
func (c *candidates) hasNode(node *Node) bool {
	return amongNodes(c.all, node)
}

// countMissing is how many of them would take traffic if they worked.
func (c *candidates) countMissing() int {
	return len(c.all) - len(c.ready) - len(c.leaving) - len(c.dead)
}

// amongNodes reports whether a node is one of others, which are sorted by name.
func amongNodes(others []*Node, node *Node) bool {
	_, ok := slices.BinarySearchFunc(others, node, byName)
	return ok
}

func newCandidates(all []*Node, cordonedLeave bool) *candidates {
	found := &candidates{all: all, zones: map[string]int{}}
	for _, node := range all {
		leaves := node.isLeaving(cordonedLeave)
		switch {
		case leaves && node.Ready:
			found.leaving = append(found.leaving, node)
		case leaves:
			found.dead = append(found.dead, node)
		case node.Ready:
			found.ready = append(found.ready, node)
			found.zones[node.Zone]++
		case node.Silent:
			found.silent = append(found.silent, node)
		}
	}
	found.ids = idsOf(found.ready)
	return found
}

func idsOf(nodes []*Node) []string {
	ids := make([]string, len(nodes))
	for i, node := range nodes {
		ids[i] = node.InstanceID
	}
	return ids
}

// candidatesOf returns the candidates, which all Services without a selector have in common.
func (s *NodeSet) candidatesOf(key candidatesKey, selector labels.Selector) *candidates {
	if key.policy != ControlPlaneAlways && key.policy != ControlPlaneNever {
		key.policy = ControlPlaneAuto
	}
	switch {
	case s == nil:
		return &candidates{}
	case selector == nil:
		return s.candidates[key]
	}
	selected := slices.DeleteFunc(eligibleNodes(s.all, key.policy), func(node *Node) bool { return !selector.Matches(node.Labels) })
	return newCandidates(selected, key.cordonedLeave)
}
