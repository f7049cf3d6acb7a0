package backend

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// localChoice is a choice of a Service with externalTrafficPolicy Local that is being made.
type localChoice struct {
	Choice
	crowd   Crowd
	present sets.Set[string]
	// serves says that a node of the pods is a backend, waits that the Service takes none before it is known what every Service has, and tries
	// that it takes one of which only the cloud can say whether it is full.
	serves, waits, tries bool
	// yielded is an instance that it gives up.
	yielded string
}

// chooseLocal leaves out those nodes of a Service with externalTrafficPolicy Local that cannot become backends, and one of several that a
// Service needs which has none. Whether the cloud refuses more than an assumed quota, only it can say: one node at a time finds out. While
// it will be known soon what every Service has, a Service that serves waits for that.
func (in Input) chooseLocal(wanted ChoiceInput, choice Choice) Choice {
	nodes := in.localNodes()
	c := localChoice{Choice: choice, crowd: wanted.Crowd, present: wanted.Room.Instances()}
	serving := slices.DeleteFunc(slices.Clone(nodes), func(node *Node) bool { return !c.present.Has(node.InstanceID) })
	c.serves = len(serving) > 0
	c.waits = c.crowd.Soon && !c.crowd.Settled && !c.crowd.Sure && (c.serves || c.present.Len() == 0)
	// endpoints on a node that has just failed still count as ready
	working := slices.DeleteFunc(slices.Clone(serving), func(node *Node) bool { return !node.Ready })
	if c.Yields = wanted.Room.ours >= c.present.Len()*wanted.Room.Groups && in.severalForEachPort(working); c.Yields {
		c.yielded, c.Rests = c.crowd.yields(serving)
	}
	c.Without = sets.New[string]()
	for _, node := range nodes {
		if c.takes(node.InstanceID) {
			c.Nodes = append(c.Nodes, node)
		} else {
			c.Without.Insert(node.InstanceID)
		}
	}
	if most := wanted.Room.Most; most > 0 {
		c.Lacking = c.Lacking[:max(min(len(c.Lacking), most-len(c.Nodes)), 0)]
	}
	c.Misses, c.LacksMany = len(c.Lacking) > 0, len(c.Nodes) < len(c.Lacking)
	if len(c.Nodes) == 0 {
		c.Starving = c.Lacking
	}
	return c.Choice
}

// takes reports whether an instance is a backend.
func (c *localChoice) takes(id string) bool {
	switch {
	case id == c.yielded:
		c.GivesUp = true
	case c.present.Has(id):
		return true
	case c.waits:
		c.Waits = true
		return false
	case c.crowd.leaves(id, true, c.serves) >= c.crowd.Each:
		return true
	case !c.tries && c.crowd.leaves(id, false, c.serves) >= c.crowd.Each:
		c.tries = true
		return true
	}
	c.Lacking = append(c.Lacking, id)
	return false
}

// leaves returns how many more times an instance may become a backend of a Service with externalTrafficPolicy Local. One that serves leaves
// it to those that have no node.
func (c Crowd) leaves(instanceID string, assumed, serves bool) int {
	if serves {
		return c.free(instanceID, assumed) - c.Lack.starving(instanceID)
	}
	return c.free(instanceID, assumed)
}

// yields returns the instance of a Service with externalTrafficPolicy Local that it gives up for another one that has no node, empty for
// none. rests says that it has just given up one.
func (c Crowd) yields(serving []*Node) (instanceID string, rests bool) {
	most := 0
	for _, node := range serving {
		if n := c.starved(node.InstanceID); n > most {
			instanceID, most = node.InstanceID, n
		}
	}
	switch {
	case most == 0 || !c.Settled:
		return "", false
	case c.Lack.Rests:
		return "", true
	}
	return instanceID, false
}

// severalForEachPort reports whether each port of a Service with externalTrafficPolicy Local has pods on several of the nodes.
func (in Input) severalForEachPort(nodes []*Node) bool {
	names, ports := sets.New[string](), map[string]sets.Set[string]{}
	for _, node := range nodes {
		names.Insert(node.Name)
	}
	for slice, name := range in.readyOnNodes {
		if !names.Has(name) {
			continue
		}
		for i := range slice.Ports {
			port := ptr.Deref(slice.Ports[i].Name, "")
			if ports[port] == nil {
				ports[port] = sets.New[string]()
			}
			ports[port].Insert(name)
		}
	}
	for _, on := range ports {
		if on.Len() < 2 {
			return false
		}
	}
	return len(ports) > 0
}

// readyOnNodes iterates over the nodes of ready endpoints.
func (in Input) readyOnNodes(yield func(*discoveryv1.EndpointSlice, string) bool) {
	for _, slice := range in.Slices {
		if !in.Counts(slice) {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.NodeName != nil && stateOf(endpoint) == endpointReady && !yield(slice, *endpoint.NodeName) {
				return
			}
		}
	}
}

// localNodes returns the nodes on which pods of a Service with externalTrafficPolicy Local run, by name.
func (in Input) localNodes() []*Node {
	names := sets.New[string]()
	for _, name := range in.readyOnNodes {
		names.Insert(name)
	}
	var found []*Node
	for _, node := range in.candidateNodes().all {
		if names.Has(node.Name) && !node.isLeaving(in.cordonedLeave()) {
			found = append(found, node)
		}
	}
	return found
}
