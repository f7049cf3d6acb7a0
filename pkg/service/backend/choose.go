package backend

import (
	"k8s.io/apimachinery/pkg/util/sets"
)

// Choice is which backends a Service has where there are quotas.
type Choice struct {
	Room Room
	// Some says that not all nodes are backends of a Service with externalTrafficPolicy Cluster, but Nodes, which are sorted by name. With
	// Local, Nodes are those of its pods that may be backends.
	Some  bool
	Nodes []*Node
	// Without are instances that the Service needs and leaves out, because they have reached their quota. Lacking is how many of them there
	// is room for; with externalTrafficPolicy Cluster, how many nodes the Service has too few.
	Without sets.Set[string]
	Lacking int
	// Short says that the Service has too few nodes, so that others give some up, Spares that it could do that, and Gives that it goes on to
	// do so.
	Short, Spares, Gives bool
	// Kept are instances that the Service does not give up, whatever others need.
	Kept []string
	// Waits says that the Service changes nothing until it is known what every Service has.
	Waits bool
	// Quota is how many times the cloud lets an instance be a backend.
	Quota int
	// Firm says that the quota has no say in which nodes are backends.
	Firm bool
}

// UsesAllNodes reports whether the backends are nodes that no labels select.
func (in Input) UsesAllNodes() bool { return !in.Pods && in.nodeSelector() == nil }

// Ready returns the nodes that may be backends and take traffic, by name.
func (in Input) Ready() []*Node { return in.candidateNodes().ready }

// InstanceIDs returns the instances that are backends by a choice. Nobody may change them.
func (c Choice) InstanceIDs(in Input) []string {
	switch {
	case in.Pods:
		return nil
	case in.Local || c.Some:
		return idsOf(c.Nodes)
	}
	return in.candidateNodes().ids
}

// Choose returns those of the nodes that are backends of a Service. With externalTrafficPolicy Local these are the nodes of its pods. It
// depends on nothing that a restart forgets: a node that is a backend stays one.
func Choose(in Input, wanted ChoiceInput) Choice {
	choice := Choice{Room: wanted.Room, Quota: wanted.Use.Quota, Firm: true}
	if wanted.Subset == SubsetOff {
		choice.Room.Most = 0
	}
	switch {
	case in.Pods:
		return choice
	case in.Local:
		return in.chooseLocal(&wanted, choice)
	case wanted.Subset == SubsetOff:
		return choice
	}
	choice.Firm = false
	if all := in.candidateNodes(); len(all.ready) > 0 {
		return in.chooseCluster(&wanted, all, choice)
	}
	return choice
}

// chooseCluster chooses the nodes of a Service with externalTrafficPolicy Cluster. While it is not known what others have, a further node
// may be one that the cloud refuses, and the fullest ones are not known: a Service that has some nodes waits.
func (in Input) chooseCluster(wanted *ChoiceInput, all *candidates, choice Choice) Choice {
	most, draining := len(all.ready), countDraining(all, &wanted.Room)
	if wanted.Room.Most > 0 {
		most = min(most, max(wanted.Room.Most-draining, 1))
	}
	size := sizeOf(wanted, len(all.ready), all.countMissing(), most)
	if size.low >= len(all.ready) && wanted.Use.Fits {
		return choice
	}
	s := newSubset(in.Nodes, all, wanted, size, draining)
	if choice.Waits = s.have > 0 && !wanted.Use.Known && !wanted.Use.Fits; !choice.Waits {
		s.chooseNodes()
		choice.Lacking, choice.Without = max(size.least-s.have, 0), sets.New(s.claimed...)
		choice.Short, choice.Spares, choice.Gives = s.have < size.low && s.free > 0, s.have > size.high, s.isGenerous()
		choice.Kept = s.kept()
	}
	if s.have < len(s.nodes) {
		choice.Some, choice.Nodes = true, s.chosenNodes()
	}
	return choice
}

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

// chooseLocal leaves out those nodes of a Service with externalTrafficPolicy Local that cannot become backends. Whether the cloud refuses
// more than an assumed quota, only it can say. A Service that serves waits until it is known what every Service has.
func (in Input) chooseLocal(wanted *ChoiceInput, choice Choice) Choice {
	use := wanted.Use
	if use.Assumed {
		use.Quota = 0
	}
	present := wanted.Room.Instances()
	waits := len(present) > 0 && !use.Known && !use.Fits
	choice.Without = sets.New[string]()
	for _, node := range in.localNodes() {
		switch {
		case present.Has(node.InstanceID):
		case waits, !use.Fits && use.isFull(node.InstanceID):
			choice.Without.Insert(node.InstanceID)
			continue
		}
		choice.Nodes = append(choice.Nodes, node)
	}
	choice.Waits = waits && len(choice.Without) > 0
	if choice.Lacking = len(choice.Without); wanted.Room.Most > 0 {
		choice.Lacking = max(min(choice.Lacking, wanted.Room.Most-len(choice.Nodes)), 0)
	}
	choice.Short = choice.Lacking > 0
	return choice
}

// localNodes returns the nodes on which pods of a Service with externalTrafficPolicy Local run, by name.
func (in Input) localNodes() []*Node {
	names := in.readyOnNodes()
	var found []*Node
	for _, node := range in.candidateNodes().all {
		if names.Has(node.Name) && !node.isLeaving(in.cordonedLeave()) {
			found = append(found, node)
		}
	}
	return found
}

// readyOnNodes returns the names of the nodes of ready endpoints.
func (in Input) readyOnNodes() sets.Set[string] {
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
	return names
}
