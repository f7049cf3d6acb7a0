package service

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// checkedEndpoints are the endpoints of a Service that the policy accepts.
type checkedEndpoints struct {
	slices []*discoveryv1.EndpointSlice
	// held are addresses of which nobody knows whether a pod has them: those that are backends stay.
	held     sets.Set[string]
	problems []problem.Problem
}

// checkEndpoints leaves out endpoints whose address would be a backend although no Pod of the namespace has it. Whoever can edit
// EndpointSlices can name any machine of the VPC in them, and Pods of other namespaces.
func (r *Reconciler) checkEndpoints(ctx context.Context, svc *corev1.Service, in backend.Input) checkedEndpoints {
	checked := checkedEndpoints{slices: in.Slices}
	rules := r.opts.Config.Policy
	if !rules.RestrictsAddresses() {
		return checked
	}
	var asked []sources.PodAddress
	var texts []string // of asked
	refused, named := sets.New[string](), sets.New[string]()
	for endpoint := range backend.PodEndpoints(in) {
		text := endpoint.Addresses[0]
		address, err := netip.ParseAddr(text)
		pod := ptr.Deref(endpoint.TargetRef, corev1.ObjectReference{})
		switch {
		case err == nil && rules.AllowsAddress(svc.Namespace, address):
		case err == nil && pod.Kind == "Pod" && (pod.Namespace == "" || pod.Namespace == svc.Namespace):
			asked, texts = append(asked, sources.PodAddress{Name: pod.Name, Address: address}), append(texts, text)
		default:
			refused.Insert(text)
		}
	}
	on, known := r.nodesOfPods(ctx, svc, asked)
	checked.held = sets.New[string]()
	for i, text := range texts {
		switch {
		case !known:
			checked.held.Insert(text)
		case on[i] != "" && !in.Nodes.IsOfOther(text, on[i]):
			named.Insert(text)
		default:
			refused.Insert(text)
		}
	}
	refused = refused.Difference(named) // an address that a Pod of the namespace has may stand in other slices, too
	checked.problems = checked.explainRefused(sets.List(refused))
	checked.slices = withoutAddresses(in, refused.Union(checked.held))
	return checked
}

// nodesOfPods returns the node of each of the pods that has the address, empty for one that has not, if that is known.
func (r *Reconciler) nodesOfPods(ctx context.Context, svc *corev1.Service, pods []sources.PodAddress) (nodes []string, known bool) {
	if r.opts.Pods == nil || len(pods) == 0 {
		return nil, len(pods) == 0
	}
	return r.opts.Pods.PodsIn(ctx, svc.Namespace).NodesOfPods(mark.ServiceName(svc), pods)
}

func (c checkedEndpoints) explainRefused(refused []string) []problem.Problem {
	var problems []problem.Problem
	if len(refused) > 0 {
		problems = append(problems, problem.Newf(problem.ReasonSkipSyncBackends,
			"no Pod of the namespace has the addresses %s, and no rule of allowedAddresses accepts them", problem.Some(refused)))
	}
	if c.held.Len() > 0 {
		problems = append(problems,
			problem.Newf(problem.ReasonSkipSyncBackends, "the Pods of the namespace cannot be read; new Pods do not become backends"))
	}
	return problems
}

// withoutAddresses returns the slices without those endpoints whose address would be a backend and is one of the addresses.
func withoutAddresses(in backend.Input, addresses sets.Set[string]) []*discoveryv1.EndpointSlice {
	if addresses.Len() == 0 {
		return in.Slices
	}
	left := make([]*discoveryv1.EndpointSlice, 0, len(in.Slices))
	for _, slice := range in.Slices {
		if in.Counts(slice) {
			copied := *slice
			copied.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), func(endpoint discoveryv1.Endpoint) bool {
				return backend.IsPodEndpoint(in, endpoint) && addresses.Has(endpoint.Addresses[0])
			})
			slice = &copied
		}
		left = append(left, slice)
	}
	return left
}
