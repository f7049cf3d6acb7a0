package backend

import (
	"cmp"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// All iterates over the nodes, by name.
func (s *NodeSet) All(yield func(*Node) bool) {
	if s == nil {
		return
	}
	for i := range s.all {
		if !yield(&s.all[i]) {
			return
		}
	}
}

// WhyNot returns what says why a node is no backend of the Service that takes new connections: the first of the rules that leaves it out,
// "" for a node that none of them does. It decides nothing: it reads what the choice has left.
func (r *Resolver) WhyNot() func(*Node) string {
	in, all, serving := r.in, r.in.candidateNodes(), r.in.readyOnNodes()
	return func(node *Node) string {
		switch {
		case !node.Candidate:
			return node.Why
		case r.selector != nil && !r.selector.Matches(node.Labels):
			return fmt.Sprintf("it lacks the labels %s (annotation %s)", in.Params.Get(annotation.BackendLabel), annotation.BackendLabel)
		case !all.hasNode(node):
			return fmt.Sprintf("the label %s makes it a control-plane node (--control-plane-nodes=%s)", nodes.LabelMaster,
				cmp.Or(in.ControlPlane, ControlPlaneAuto))
		case node.Leaving:
			return "it is about to go: " + node.Why
		case node.isLeaving(in.cordonedLeave()):
			return fmt.Sprintf("it is cordoned (annotation %s)", annotation.RemoveUnscheduledBackend)
		case in.Local && !serving.Has(node.Name):
			return "externalTrafficPolicy is Local, and no ready endpoint of the Service is on it"
		case in.Local && in.Choice.Without.Has(node.InstanceID):
			return in.withoutRoom()
		case in.Local:
			return ""
		case node.Silent:
			return "its kubelet is silent"
		case !node.Ready:
			return "it is not ready"
		case in.Choice.Some && !amongNodes(in.Choice.Nodes, node):
			return in.subsetOf(len(all.ready))
		}
		return ""
	}
}

// withoutRoom says why a node with endpoints is left out.
func (in Input) withoutRoom() string {
	if in.Choice.Waits {
		return "it is not known yet of which Services its instance is a backend"
	}
	return fmt.Sprintf("its instance is %s as many times as the cloud lets it be (quota %s)",
		in.textFor("behind CLBs", "in server groups of NLBs"), in.textFor(alicloud.QuotaCLBsPerInstance, alicloud.QuotaGroupsPerServer))
}

// subsetOf says why a Service uses only some of the nodes.
func (in Input) subsetOf(ready int) string {
	used := fmt.Sprintf("the Service uses %d of %d nodes", len(in.Choice.Nodes), ready)
	if subset, ok := ParseSubset(in.Params.Get(annotation.BackendSubset)); ok && subset > 0 && int(subset) <= len(in.Choice.Nodes) {
		return fmt.Sprintf("%s (annotation %s: %d)", used, annotation.BackendSubset, int(subset))
	}
	return fmt.Sprintf("%s, as the quotas %s and %s allow", used,
		in.textFor(alicloud.QuotaBackendsPerCLB, alicloud.QuotaServersPerNLB),
		in.textFor(alicloud.QuotaCLBsPerInstance, alicloud.QuotaGroupsPerServer))
}

// PodEndpointWhyNot says why the address of an endpoint is no backend that takes new connections, "" for one that is or may be.
func (r *Resolver) PodEndpointWhyNot(slice *discoveryv1.EndpointSlice, endpoint discoveryv1.Endpoint) string {
	if !r.in.Counts(slice) || len(endpoint.Addresses) == 0 {
		return fmt.Sprintf("its address is of the family %s, and the load balancer takes %s", slice.AddressType, r.in.Family)
	}
	address := endpoint.Addresses[0]
	switch state := backendState(endpoint, r.in.Waiting); {
	case state == endpointGone:
		return "the endpoint is not ready"
	case state == endpointTerminating:
		return "the pod is terminating"
	case !r.withinBound(address):
		return fmt.Sprintf("a Service can have at most %d addresses of pods", MaxPods)
	case r.in.Interfaces[address] != "":
		return ""
	case !MayHaveInterface(r.in.Blocks, address):
		return "the address is outside of the VPC"
	case r.in.InterfacesUnread:
		return "its network interface could not be read"
	}
	return "no network interface of the VPC has the address"
}
