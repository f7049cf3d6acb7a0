package backend

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Input is everything that the backends of a Service depend on.
type Input struct {
	Params annotation.Params
	Nodes  []Node
	// Slices are all EndpointSlices of the Service.
	Slices []*discoveryv1.EndpointSlice
	// Pods makes the addresses of pods the backends, at the target port; otherwise they are nodes, at the node port.
	Pods bool
	// Local is externalTrafficPolicy Local: only nodes that run ready endpoints.
	Local bool
	// Family is the family of the endpoint addresses that count.
	Family discoveryv1.AddressType
	// ControlPlane says whether control-plane nodes are backends.
	ControlPlane ControlPlanePolicy
	// Interfaces maps addresses of pods to the ids of their network interfaces. An address that is missing is not known
	// yet.
	Interfaces map[string]string
	// Waiting are addresses of pods that wait for nothing but to be backends, see [GatePrefix].
	Waiting sets.Set[string]
	// Blocks are the address blocks of the VPC, none when they are not known. An address of a pod that is in none of them
	// has no network interface and never will.
	Blocks []netip.Prefix
}

// Resolver is the only authority on the backends of a Service.
type Resolver struct {
	in Input
	// eligible are the nodes that may be backends.
	eligible []Node
}

// NewResolver returns a resolver.
func NewResolver(in Input) *Resolver {
	r := &Resolver{in: in}
	for _, node := range eligible(in.Nodes, in.ControlPlane) {
		if r.selects(node) {
			r.eligible = append(r.eligible, node)
		}
	}
	return r
}

// Backends returns the backends of one port of the Service.
func (r *Resolver) Backends(port corev1.ServicePort) (Set, []problem.Problem) {
	switch {
	case r.in.Pods:
		return r.pods(port)
	case r.in.Local:
		return r.local(port)
	default:
		return r.cluster(port)
	}
}

// selects reports whether the annotation backend-label wants the node.
func (r *Resolver) selects(node Node) bool {
	text := r.in.Params.Get(annotation.BackendLabel)
	if text == "" {
		return true
	}
	wanted, err := labels.ConvertSelectorToLabelsMap(text)
	return err == nil && labels.SelectorFromSet(wanted).Matches(node.Labels)
}

// unselected reports that no node has the labels of the annotation backend-label.
func (r *Resolver) unselected() []problem.Problem {
	if r.in.Params.Get(annotation.BackendLabel) == "" || slices.ContainsFunc(r.in.Nodes, r.selects) {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonSkipSyncBackends, "%s: no node has the labels %s; the members stay as they are", annotation.BackendLabel, r.in.Params.Get(annotation.BackendLabel))}
}

func (r *Resolver) leaving(node Node) bool {
	return node.Leaving || node.Cordoned && r.in.Params.Get(annotation.RemoveUnscheduledBackend) == "on"
}

func nodeBackend(node Node, port int32, weight int) Backend {
	return Backend{Kind: KindInstance, ID: node.InstanceID, Port: int(port), Weight: weight, Zone: node.Zone}
}

// cluster returns the backends of externalTrafficPolicy Cluster: every node that is ready, at the node port.
func (r *Resolver) cluster(port corev1.ServicePort) (Set, []problem.Problem) {
	set := Set{Backends: []Backend{}}
	weight := r.in.Params.Int(annotation.DefaultWeight, alicloud.MaxWeight)
	for _, node := range r.eligible {
		switch {
		case r.leaving(node):
			set.Draining = append(set.Draining, nodeBackend(node, port.NodePort, 0))
		case node.Ready:
			set.Backends = append(set.Backends, nodeBackend(node, port.NodePort, weight))
		}
	}
	if len(set.Backends) > 0 {
		r.doubtUnresolved(&set)
		return set, r.addVirtual(&set, port, weight)
	}
	// Every candidate at once is more likely a fault of what we see than of all nodes.
	set.Doubt = true
	return set, append(r.unselected(), r.addVirtual(&set, port, weight)...)
}

// local returns the backends of externalTrafficPolicy Local: the nodes that run ready endpoints, weighted by their number.
func (r *Resolver) local(port corev1.ServicePort) (Set, []problem.Problem) {
	set := Set{Backends: []Backend{}}
	counts := r.count(port)
	if len(r.in.Slices) == 0 {
		set.Doubt = true // an informer that has seen no slice yet looks like a Service without endpoints
		return set, nil
	}
	highest := 0
	for _, count := range counts.ready {
		highest = max(highest, count)
	}
	for _, node := range r.eligible {
		ready, terminating := counts.ready[node.Name], counts.terminating[node.Name]
		switch {
		case ready == 0 && terminating > 0, ready > 0 && r.leaving(node):
			set.Draining = append(set.Draining, nodeBackend(node, port.NodePort, 0))
		case ready > 0:
			set.Backends = append(set.Backends, nodeBackend(node, port.NodePort, scaled(ready, highest)))
		}
	}
	r.doubtUnresolved(&set)
	problems := r.missingNodes(counts, &set)
	return set, append(problems, r.addVirtual(&set, port, 1)...)
}

// scaled keeps the proportion of endpoints per node within the range of weights.
func scaled(count, highest int) int {
	if highest <= alicloud.MaxWeight {
		return count
	}
	return max(1, count*alicloud.MaxWeight/highest)
}

// doubtUnresolved: a node whose instance is not known yet may be the very member that looks unwanted. Members that are
// known to be other nodes leave all the same.
func (r *Resolver) doubtUnresolved(set *Set) {
	for _, node := range r.in.Nodes {
		if node.Unresolved {
			set.Doubt = true
		}
	}
	if !set.Doubt {
		return
	}
	set.Gone = instanceIDs(r.in.Nodes)
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

func (r *Resolver) count(port corev1.ServicePort) endpointCounts {
	counts := endpointCounts{ready: map[string]int{}, terminating: map[string]int{}}
	r.each(port, func(endpoint discoveryv1.Endpoint, _ int32) {
		state := StateOf(endpoint)
		switch {
		case state == EndpointGone:
		case endpoint.NodeName == nil:
			counts.unplaced++
		case state == EndpointReady:
			counts.ready[*endpoint.NodeName]++
		default:
			counts.terminating[*endpoint.NodeName]++
		}
	})
	return counts
}

// missingNodes reports endpoints that no member stands for. A node that is not in the cache may still come, so removals
// wait.
func (r *Resolver) missingNodes(counts endpointCounts, set *Set) []problem.Problem {
	known := sets.New[string]()
	for _, node := range r.in.Nodes {
		known.Insert(node.Name)
	}
	var problems []problem.Problem
	for _, name := range sets.List(sets.KeySet(counts.ready)) {
		if !known.Has(name) {
			set.Doubt = true
			problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends, "node %s has endpoints and is unknown", name))
		}
	}
	if counts.unplaced > 0 {
		problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends,
			"%d endpoints name no node and cannot be reached with externalTrafficPolicy Local", counts.unplaced))
	}
	return problems
}

type EndpointState int

const (
	EndpointGone EndpointState = iota
	EndpointReady
	// EndpointTerminating still serves the connections it has.
	EndpointTerminating
)

// StateOf reads the conditions; a missing condition means ready (documented in the EndpointSlice API).
func StateOf(endpoint discoveryv1.Endpoint) EndpointState {
	conditions := endpoint.Conditions
	terminating := conditions.Terminating != nil && *conditions.Terminating
	serving := conditions.Serving == nil || *conditions.Serving
	switch {
	case terminating && serving:
		return EndpointTerminating
	case !terminating && (conditions.Ready == nil || *conditions.Ready):
		return EndpointReady
	}
	return EndpointGone
}

// memberState is the state of an endpoint whose address is to be a member.
func memberState(endpoint discoveryv1.Endpoint, waiting sets.Set[string]) EndpointState {
	if state := StateOf(endpoint); state != EndpointGone || !waiting.Has(endpoint.Addresses[0]) {
		return state
	}
	return EndpointReady
}

// each calls f for every endpoint that has the Service's port, with the port's number there. All slices count together:
// one endpoint may move from one to another at any time, and then stand in both.
func (r *Resolver) each(port corev1.ServicePort, f func(endpoint discoveryv1.Endpoint, number int32)) {
	seen := sets.New[string]()
	for _, slice := range r.in.Slices {
		if slice.AddressType != r.in.Family {
			continue
		}
		number, ok := PortOf(slice, port)
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

// PortOf finds the port by the name of the Service's port: the number may differ from slice to slice.
func PortOf(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) (int32, bool) {
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
