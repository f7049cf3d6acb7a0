package slb

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// resolver is the only authority on who is a member of a group.
type resolver struct {
	params Params
	// nodes are all nodes, members those that may be members.
	nodes   []Node
	members []Node
	slices  []*discoveryv1.EndpointSlice
	// interfaces are the network interfaces of addresses of pods, see [Input].
	interfaces map[string]string
	// addressType is the family of the addresses of endpoints that count.
	addressType discoveryv1.AddressType
	// blocks are those of the VPC, see [Input].
	blocks []netip.Prefix
	// waiting are addresses that count as ready, see [Input].
	waiting sets.Set[string]
}

func newResolver(in Input) *resolver {
	r := &resolver{
		params: in.Params, nodes: in.Nodes, slices: in.Slices, interfaces: in.Interfaces, addressType: in.memberAddresses(), blocks: in.Blocks, waiting: in.Waiting,
	}
	for _, node := range eligible(in.Nodes, in.Config.ControlPlaneNodes) {
		if r.selects(node) {
			r.members = append(r.members, node)
		}
	}
	return r
}

// selects reports whether the annotation backend-label wants the node.
func (r *resolver) selects(node Node) bool {
	text := r.params.Get(BackendLabel)
	if text == "" {
		return true
	}
	wanted, err := labels.ConvertSelectorToLabelsMap(text)
	return err == nil && labels.SelectorFromSet(wanted).Matches(node.Labels)
}

// unselected reports that no node has the labels of the annotation backend-label.
func (r *resolver) unselected() []Problem {
	if r.params.Get(BackendLabel) == "" || slices.ContainsFunc(r.nodes, r.selects) {
		return nil
	}
	return []Problem{problemf(ReasonSkipSyncBackends, "%s: no node has the labels %s; the members stay as they are", BackendLabel, r.params.Get(BackendLabel))}
}

func (r *resolver) leaving(node Node) bool {
	return node.Leaving || node.Cordoned && r.params.Get(RemoveUnscheduledBackend) == "on"
}

func (r *resolver) backend(node Node, port int32, weight int, mark string) alicloud.Backend {
	return alicloud.Backend{
		BackendKey:  alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: node.InstanceID, Port: int(port)},
		Weight:      weight,
		Description: mark,
	}
}

// cluster makes the group of externalTrafficPolicy Cluster: every node that is ready, at the node port.
func (r *resolver) cluster(port corev1.ServicePort, mark string) (Group, []Problem) {
	group := r.newGroup(mark)
	weight := r.params.integer(DefaultWeight, alicloud.MaxWeight)
	for _, node := range r.members {
		switch {
		case r.leaving(node):
			group.Draining = append(group.Draining, r.backend(node, port.NodePort, 0, mark))
		case node.Ready:
			group.Backends = append(group.Backends, r.backend(node, port.NodePort, weight, mark))
		}
	}
	if len(group.Backends) > 0 {
		r.doubtUnresolved(&group)
		return group, r.addVirtual(&group, port, weight)
	}
	// Every candidate at once is more likely a fault of what we see than of all nodes.
	group.Doubt = true
	return group, append(r.unselected(), r.addVirtual(&group, port, weight)...)
}

// local makes the group of externalTrafficPolicy Local: the nodes that run ready endpoints, weighted by their number.
func (r *resolver) local(port corev1.ServicePort, mark string) (Group, []Problem) {
	group := r.newGroup(mark)
	counts := r.count(port)
	if len(r.slices) == 0 {
		group.Doubt = true // an informer that has seen no slice yet looks like a Service without endpoints
		return group, nil
	}
	highest := 0
	for _, count := range counts.ready {
		highest = max(highest, count)
	}
	for _, node := range r.members {
		ready, terminating := counts.ready[node.Name], counts.terminating[node.Name]
		switch {
		case ready == 0 && terminating > 0, ready > 0 && r.leaving(node):
			group.Draining = append(group.Draining, r.backend(node, port.NodePort, 0, mark))
		case ready > 0:
			group.Backends = append(group.Backends, r.backend(node, port.NodePort, scaled(ready, highest), mark))
		}
	}
	r.doubtUnresolved(&group)
	problems := r.missingNodes(counts, &group)
	return group, append(problems, r.addVirtual(&group, port, 1)...)
}

// scaled keeps the proportion of endpoints per node within the range of weights.
func scaled(count, highest int) int {
	if highest <= alicloud.MaxWeight {
		return count
	}
	return max(1, count*alicloud.MaxWeight/highest)
}

func (r *resolver) newGroup(mark string) Group {
	return Group{Name: mark, Backends: []alicloud.Backend{}, KeepWeights: r.params.Get(IgnoreWeightUpdate) == "on"}
}

// doubtUnresolved: a node whose instance is not known yet may be the very member that looks unwanted. Members that are
// known to be other nodes leave all the same.
func (r *resolver) doubtUnresolved(group *Group) {
	for _, node := range r.nodes {
		if node.Unresolved {
			group.Doubt = true
		}
	}
	if !group.Doubt {
		return
	}
	group.Gone = instanceIDs(r.nodes)
}

func instanceIDs(nodes []Node) sets.Set[string] {
	ids := sets.New[string]()
	for _, node := range nodes {
		if node.InstanceID != "" {
			ids.Insert(node.InstanceID)
		}
	}
	return ids
}

// endpointCounts are numbers of endpoints by node name; unplaced counts those without a node.
type endpointCounts struct {
	ready, terminating map[string]int
	unplaced           int
}

func (r *resolver) count(port corev1.ServicePort) endpointCounts {
	counts := endpointCounts{ready: map[string]int{}, terminating: map[string]int{}}
	r.each(port, func(endpoint discoveryv1.Endpoint, _ int32) {
		state := stateOf(endpoint)
		switch {
		case state == endpointGone:
		case endpoint.NodeName == nil:
			counts.unplaced++
		case state == endpointReady:
			counts.ready[*endpoint.NodeName]++
		default:
			counts.terminating[*endpoint.NodeName]++
		}
	})
	return counts
}

// missingNodes reports endpoints that no member stands for. A node that is not in the cache may still come, so removals
// wait.
func (r *resolver) missingNodes(counts endpointCounts, group *Group) []Problem {
	known := sets.New[string]()
	for _, node := range r.nodes {
		known.Insert(node.Name)
	}
	var problems []Problem
	for _, name := range sets.List(sets.KeySet(counts.ready)) {
		if !known.Has(name) {
			group.Doubt = true
			problems = append(problems, problemf(ReasonSkipSyncBackends, "node %s has endpoints and is unknown", name))
		}
	}
	if counts.unplaced > 0 {
		problems = append(problems, problemf(ReasonSkipSyncBackends,
			"%d endpoints name no node and cannot be reached with externalTrafficPolicy Local", counts.unplaced))
	}
	return problems
}

type endpointState int

const (
	endpointGone endpointState = iota
	endpointReady
	// endpointTerminating still serves the connections it has.
	endpointTerminating
)

// stateOf reads the conditions; a missing condition means ready (documented in the EndpointSlice API).
func stateOf(endpoint discoveryv1.Endpoint) endpointState {
	conditions := endpoint.Conditions
	terminating := conditions.Terminating != nil && *conditions.Terminating
	serving := conditions.Serving == nil || *conditions.Serving
	switch {
	case terminating && serving:
		return endpointTerminating
	case !terminating && (conditions.Ready == nil || *conditions.Ready):
		return endpointReady
	}
	return endpointGone
}

// memberState is the state of an endpoint whose address is to be a member.
func memberState(endpoint discoveryv1.Endpoint, waiting sets.Set[string]) endpointState {
	if state := stateOf(endpoint); state != endpointGone || !waiting.Has(endpoint.Addresses[0]) {
		return state
	}
	return endpointReady
}

// each calls f for every endpoint that has the Service's port, with the port's number there. All slices count together:
// one endpoint may move from one to another at any time, and then stand in both.
func (r *resolver) each(port corev1.ServicePort, f func(endpoint discoveryv1.Endpoint, number int32)) {
	seen := sets.New[string]()
	for _, slice := range r.slices {
		if slice.AddressType != r.addressType {
			continue
		}
		number, ok := portOf(slice, port)
		if !ok {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if len(endpoint.Addresses) == 0 || seen.Has(endpoint.Addresses[0]) {
				continue
			}
			seen.Insert(endpoint.Addresses[0])
			f(endpoint, number)
		}
	}
}

// memberAddresses is the family of the addresses of endpoints that count.
func (in Input) memberAddresses() discoveryv1.AddressType {
	if in.ipv6Members() {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// portOf finds the port by the name of the Service's port: the number may differ from slice to slice.
func portOf(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) (int32, bool) {
	for _, candidate := range slice.Ports {
		name := ""
		if candidate.Name != nil {
			name = *candidate.Name
		}
		protocol := corev1.ProtocolTCP
		if candidate.Protocol != nil {
			protocol = *candidate.Protocol
		}
		if name == port.Name && protocol == port.Protocol && candidate.Port != nil {
			return *candidate.Port, true
		}
	}
	return 0, false
}
