package backend

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func nodeBackend(node *Node, port int32, weight int) Backend {
	return Backend{Kind: KindInstance, ID: node.InstanceID, NodeIP: node.Address, Port: int(port), Weight: weight, Zone: node.Zone}
}

// clusterBackends returns the backends of externalTrafficPolicy Cluster: every node that is ready, at the node port. Without one, those
// that may still take traffic stay or come back: nodes that are about to go, and nodes whose kubelets are silent.
func (r *Resolver) clusterBackends(port corev1.ServicePort) (Set, []problem.Problem) {
	weight := r.in.Params.Int(annotation.DefaultWeight, alicloud.MaxWeight)
	ready := r.nodes.ready
	if r.in.Choice.Some {
		ready = r.in.Choice.Nodes
	}
	set := Set{Alike: Alike{nodes: ready, port: port.NodePort, weight: weight}}
	var problems []problem.Problem
	if set.Len() > 0 {
		r.doubtUnresolved(&set)
	} else {
		// All nodes at once: more likely a fault of what we see than of the nodes.
		set.Doubt = true
		problems = r.reportUnselected()
	}
	backends := func(nodes []*Node) []Backend { return slices.Collect(Alike{nodes, port.NodePort, weight}.eachBackend) }
	terminating, more := r.addVirtual(&set, port, weight)
	leaving := backends(r.nodes.leaving)
	if set.Len() == 0 {
		leaving = append(leaving, backends(r.nodes.silent)...)
	}
	set.drainLeaving(leaving, terminating)
	for _, backend := range backends(r.nodes.dead) {
		backend.Weight = 0
		set.Draining = append(set.Draining, backend)
	}
	return set, slices.Concat(problems, more, r.reportTwins())
}

// holdCordoned has cordoned nodes stay as they are where nobody knows whether they are to drain, because the annotation that says so is not
// accepted.
func (r *Resolver) holdCordoned(set *Set) {
	if r.in.Pods || !r.in.Params.Refused(annotation.RemoveUnscheduledBackend) {
		return
	}
	cordoned := sets.New[string]()
	for _, node := range r.nodes.all {
		if node.Cordoned && !node.Leaving {
			cordoned.Insert(node.backendKeys()...)
		}
	}
	set.holdRegistered(cordoned)
	set.Alike.nodes = slices.DeleteFunc(slices.Clone(set.Alike.nodes), func(node *Node) bool { return cordoned.Has(node.InstanceID) })
	set.Backends = slices.DeleteFunc(slices.Clone(set.Backends), func(b Backend) bool { return cordoned.Has(b.ID) })
}

// keepOne has a group keep a node that works until one of those is there that are chosen: the ports of a Service may have different nodes,
// and the load balancer may have no room for another one.
func (r *Resolver) keepOne(set *Set, group string) {
	room, chosen := &r.in.Choice.Room, r.in.Choice.Nodes
	if r.in.Pods || r.in.Local || !r.in.Choice.Some || room.Swaps {
		return
	}
	has := sets.New[string]()
	for entry := range room.inGroup(group) {
		if entry.Kind == KindInstance && !entry.Idle {
			has.Insert(entry.ID)
		}
	}
	isThere := func(node *Node) bool { return has.Has(node.InstanceID) }
	if slices.ContainsFunc(chosen, isThere) {
		return
	}
	if at := slices.IndexFunc(r.nodes.ready, isThere); at >= 0 {
		set.Alike.nodes = append(slices.Clone(chosen), r.nodes.ready[at])
		slices.SortFunc(set.Alike.nodes, byName)
	}
}

// localBackends returns the backends of externalTrafficPolicy Local: the nodes that run ready endpoints, weighted by their number. Where no
// endpoint is ready, kube-proxy serves with those that terminate, and so does the load balancer.
// Source: https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/1669-proxy-terminating-endpoints.
func (r *Resolver) localBackends(port corev1.ServicePort) (Set, []problem.Problem) {
	set := Set{Counted: true}
	if len(r.in.Slices) == 0 {
		set.Doubt = true // an informer that has seen no slice yet looks like a Service without endpoints
		return set, nil
	}
	counts := r.countEndpoints(port)
	var leaving, terminating []Backend
	var full []string
	mostReady, mostTerminating := highestCount(counts.ready), highestCount(counts.terminating)
	for _, node := range r.nodes.all {
		ready := counts.ready[node.Name]
		switch {
		case ready > 0 && node.isLeaving(r.in.cordonedLeave()):
			leaving = append(leaving, nodeBackend(node, port.NodePort, scaledWeight(ready, mostReady)))
		case ready > 0 && r.in.Choice.Without.Has(node.InstanceID):
			full = append(full, node.Name)
		case ready > 0:
			set.Backends = append(set.Backends, nodeBackend(node, port.NodePort, scaledWeight(ready, mostReady)))
		case counts.terminating[node.Name] > 0:
			terminating = append(terminating, nodeBackend(node, port.NodePort, scaledWeight(counts.terminating[node.Name], mostTerminating)))
		}
	}
	r.doubtUnresolved(&set)
	problems := slices.Concat(r.missingNodes(counts, &set, set.Len()+len(leaving)+len(terminating) > 0), r.reportTwins())
	if set.portless = counts.withoutPort; set.portless {
		set.holdRegistered(r.nodesOfEndpoints())
	}
	if !r.in.Choice.Waits { // else it will be known soon
		r.short.noteRefused(full, &set)
	}
	pods, more := r.addVirtual(&set, port, 1)
	set.drainLeaving(leaving, append(terminating, pods...))
	return set, append(problems, more...)
}

func highestCount(counts map[string]int) int {
	most := 0
	for _, count := range counts {
		most = max(most, count)
	}
	return most
}

// scaledWeight keeps the proportion of endpoints per node within the range of weights.
func scaledWeight(count, highest int) int {
	if highest <= alicloud.MaxWeight {
		return count
	}
	return max(1, count*alicloud.MaxWeight/highest)
}

// doubtUnresolved: a node whose instance is not known yet may be the very backend that looks unwanted. Backends that are known to be
// other nodes leave all the same.
func (r *Resolver) doubtUnresolved(set *Set) {
	if r.in.Nodes != nil && r.in.Nodes.inDoubt {
		set.Doubt, set.Gone = true, r.in.Nodes.instanceIDs()
	}
}

// endpointCounts are numbers of endpoints by node name; unplaced counts those without a node. withoutPort says that there are
// endpoints, but none with the port.
type endpointCounts struct {
	ready, terminating map[string]int
	unplaced           int
	withoutPort        bool
}

func (r *Resolver) countEndpoints(port corev1.ServicePort) endpointCounts {
	counts := endpointCounts{ready: map[string]int{}, terminating: map[string]int{}}
	counts.withoutPort = !r.eachEndpoint(port, func(endpoint discoveryv1.Endpoint, _ int32) {
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

// nodesOfEndpoints are the nodes on which endpoints are, at whatever port.
func (r *Resolver) nodesOfEndpoints() sets.Set[string] {
	found := sets.New[string]()
	for _, slice := range r.in.Slices {
		if !r.in.Counts(slice) {
			continue
		}
		for i := range slice.Endpoints {
			if endpoint := &slice.Endpoints[i]; endpoint.NodeName != nil && stateOf(*endpoint) != endpointGone {
				found.Insert(r.in.Nodes.nodeNamed(*endpoint.NodeName).backendKeys()...)
			}
		}
	}
	return found
}

// missingNodes reports endpoints that no backend stands for. serves says that others have one. Where none has, what serves stays: a label
// that leaves no node with an endpoint, for example, is more likely an error than a wish.
func (r *Resolver) missingNodes(counts endpointCounts, set *Set, serves bool) []problem.Problem {
	var unknown, ineligible, stay []string
	for _, name := range slices.Sorted(maps.Keys(counts.ready)) {
		switch node := r.in.Nodes.nodeNamed(name); {
		case node == nil:
			unknown = append(unknown, name)
		case node.Virtual || node.Unresolved || node.TwinOf != "": // reported elsewhere, if at all
		case !r.nodes.hasNode(node):
			ineligible, stay = append(ineligible, name), append(stay, node.backendKeys()...)
		}
	}
	if !serves {
		set.holdRegistered(sets.New(stay...))
	}
	problems := r.reportUnselected()
	if len(unknown) > 0 {
		if !serves && r.in.Nodes != nil { // an instance that is known to be another node is not the one that is not known
			set.Doubt, set.Gone = true, r.in.Nodes.instanceIDs()
		}
		problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends, "endpoints are on unknown nodes: %s", problem.Some(unknown)))
	}
	if len(ineligible) > 0 {
		problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends,
			"endpoints are on nodes that cannot be backends, and get no traffic with externalTrafficPolicy Local: %s", problem.Some(ineligible)))
	}
	if counts.unplaced > 0 {
		problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends,
			"some endpoints do not specify a node, and get no traffic with externalTrafficPolicy Local"))
	}
	return problems
}

// reportUnselected reports that no node has the labels of the annotation backend-label.
func (r *Resolver) reportUnselected() []problem.Problem {
	if r.selector == nil || r.in.Nodes != nil && slices.ContainsFunc(r.in.Nodes.all, func(node Node) bool {
		return r.selector.Matches(node.Labels)
	}) {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonSkipSyncBackends,
		"%s: no node has the labels %s; the backends stay as they are", annotation.BackendLabel, r.in.Params.Get(annotation.BackendLabel))}
}

// reportTwins reports Nodes whose instance another Node stands for.
func (r *Resolver) reportTwins() []problem.Problem {
	if r.in.Nodes == nil {
		return nil
	}
	twins := r.in.Nodes.twins
	if len(twins) == 0 {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonSkipSyncBackends,
		"nodes are not backends, because older nodes have the same instance: %s", problem.Some(twins))}
}
