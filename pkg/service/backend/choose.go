package backend

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ChoiceInput is what [Choose] depends on beside the nodes.
type ChoiceInput struct {
	Service types.UID
	Subset  Subset
	Room    Room
	Crowd   Crowd
	// Size is [Choice.Size] of the choice before.
	Size int
}

// zoneNodes is how many nodes a Service has in each zone, as far as there are so many: one that fails, or is replaced, leaves two.
const zoneNodes = 3

// Choice is which backends a Service has where there are quotas.
type Choice struct {
	Room Room
	// Some says that not all nodes are backends of a Service with externalTrafficPolicy Cluster, but Nodes, which are sorted by name. With
	// Local, Nodes are those of its pods that may be backends.
	Some  bool
	Nodes []*Node
	// Lacking are instances that the Service needs, and that the cloud does not let become backends once more. LacksMany says that it has
	// fewer than half of what it needs, Misses that it would have more nodes if it could.
	Lacking           []string
	LacksMany, Misses bool
	// Starving are those of Lacking of which the Service needs one, because it has no node.
	Starving []string
	// Spares says that it has more nodes than it needs, Yields that it can do without one of those that it has, or has another one in its
	// place.
	Spares, Yields bool
	// Without are instances that a Service with externalTrafficPolicy Local leaves out for that reason.
	Without sets.Set[string]
	// GivesUp says that it gives up a node that another Service lacks, Rests that it may have to give up one later, takes one more, or
	// replaces one, Waits that it takes no further node until it is known what every Service has.
	GivesUp, Rests, Waits bool
	// Quota is how many times the cloud lets an instance be a backend.
	Quota int
	// Firm says that the quota has no say in which nodes are backends.
	Firm bool
	// Size is how many nodes the Service is to have again that has lost some, 0 for one that has lost none. Once these have left, the cloud no
	// longer shows how many there were. A product that replaces backends in one call needs no such number.
	Size int
}

// InstanceIDs returns the instances that may be backends by a choice, nil for those of all nodes of the cluster that may be backends at
// all.
func (c Choice) InstanceIDs(in Input) []string {
	nodes := c.Nodes
	switch {
	case in.Pods:
		return []string{}
	case in.Local || c.Some:
	case in.nodeSelector() == nil:
		return nil
	default:
		nodes = in.candidateNodes().ready
	}
	ids := make([]string, 0, len(nodes))
	for _, node := range nodes {
		ids = append(ids, node.InstanceID)
	}
	return ids
}

// UsesAllNodes reports whether the backends are nodes that no labels select.
func (in Input) UsesAllNodes() bool { return !in.Pods && in.nodeSelector() == nil }

// Ready returns the nodes that may be backends and take traffic, by name.
func (in Input) Ready() []*Node { return in.candidateNodes().ready }

// Choose returns those of the nodes that are backends of a Service. With externalTrafficPolicy Local these are the nodes of its pods.
//
// With Cluster, a node that is a backend stays one. Those that come are chosen by their hash with the Service, weighted by how many times
// they can still become backends; each zone has some, and nodes that are backends much more often than others come last. A node that the
// cloud would refuse is left out. The choice depends on nothing that a restart forgets but [ChoiceInput.Size]: without it, nodes that have
// left are replaced only if the Service has too few.
func Choose(in Input, wanted ChoiceInput) Choice {
	room := wanted.Room
	if wanted.Subset == SubsetOff {
		room.Most = 0
	}
	firm := Choice{Room: room, Quota: wanted.Crowd.Quota, Firm: true}
	switch {
	case in.Pods:
		return firm
	case in.Local:
		return in.chooseLocal(wanted, firm)
	case wanted.Subset == SubsetOff:
		return firm
	}
	choice := firm
	choice.Firm = false
	if all := in.candidateNodes(); len(all.ready) > 0 {
		return in.chooseNodes(wanted, all, choice)
	}
	return choice
}

// chooseNodes chooses the nodes of a Service with externalTrafficPolicy Cluster.
func (in Input) chooseNodes(wanted ChoiceInput, all *candidates, choice Choice) Choice {
	leaving := countDraining(all, &wanted.Room)
	most := len(all.ready)
	if wanted.Room.Most > 0 {
		most = max(wanted.Room.Most-leaving, 1)
	}
	span := spanOf(wanted.Subset, len(all.ready), most, wanted.Crowd, hashFraction(string(wanted.Service)))
	if span.low >= len(all.ready) && wanted.Crowd.Sure {
		choice.Spares = true
		return choice
	}
	c := newChooser(in.Nodes, all, wanted, span)
	c.lost -= leaving
	choice.Size = c.chooseAgain()
	choice.Lacking, choice.LacksMany, choice.Misses = c.lacking, len(c.lacking) > 0 && 2*len(c.chosen) < span.least, len(c.chosen) < span.low
	choice.Starving, choice.Spares, choice.Yields = c.starving, len(c.chosen) > span.least, len(c.chosen) > 1 ||
		len(c.chosen) == 1 && c.moves()
	choice.GivesUp, choice.Rests, choice.Waits = c.givesUp, c.rests, c.waits
	if len(c.chosen) < len(all.ready) {
		slices.SortFunc(c.chosen, byName)
		choice.Some, choice.Nodes = true, c.chosen
	}
	return choice
}

func byName(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }

// countDraining counts the backends that stay for the connections that they have.
func countDraining(all *candidates, room *Room) int {
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
