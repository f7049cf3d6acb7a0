package observe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Owned returns the CLBs with the owner tag of a Service. A CLB in the answer that does not show the tag, because it is about something
// else or the index lags, does not count.
func Owned(ctx context.Context, api Reader, svc *corev1.Service) ([]alicloud.LoadBalancer, error) {
	name := mark.DefaultName(svc.UID)
	found, err := api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: mark.TagOwner, Value: name}})
	if err != nil {
		return nil, fmt.Errorf("find the CLB of the Service: %w", err)
	}
	return slices.DeleteFunc(found, func(lb alicloud.LoadBalancer) bool {
		owner, _ := lb.Tag(mark.TagOwner)
		return owner != name
	}), nil
}

// Find finds the CLB of a Service by its owner tag, and returns nil when there is none. Of several it is the one with lastID, the
// CLB that the Service was on; others are the ids of the rest.
func Find(ctx context.Context, api Reader, svc *corev1.Service, lastID string) (lb *alicloud.LoadBalancer, others []string, err error) {
	found, err := Owned(ctx, api, svc)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 1 {
		return &found[0], nil, nil
	}
	lb, others = Among(found, lastID)
	if lb == nil && len(others) > 0 {
		return nil, nil,
			&problem.ConfigError{Field: "tag " + mark.TagOwner,
				Reason: fmt.Sprintf("%d CLBs have the value %s: %s; the label of the Service names none of them; remove the tag from all but one",
					len(others), mark.DefaultName(svc.UID), problem.Some(others))}
	}
	return lb, others, nil
}

// Among returns the CLB with an id, nil where it is not among those found, and the ids of the others.
func Among(found []alicloud.LoadBalancer, id string) (lb *alicloud.LoadBalancer, others []string) {
	for i := range found {
		if found[i].ID == id {
			lb = &found[i]
		} else {
			others = append(others, found[i].ID)
		}
	}
	return lb, others
}

// All reads everything of a CLB that a Service may have made. A read that fails is an error and never an empty set.
func All(ctx context.Context, api Reader, lb alicloud.LoadBalancer, service types.NamespacedName, reused bool) (*model.Model, error) {
	model, err := Listeners(ctx, api, lb)
	if err != nil {
		return nil, err
	}
	model.Reused = reused
	return Groups(ctx, api, model, service)
}

// Listeners reads the listeners of a CLB, and returns its model without groups.
func Listeners(ctx context.Context, api Reader, lb alicloud.LoadBalancer) (*model.Model, error) {
	listeners, err := api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return nil, fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	return New(lb, listeners[lb.ID]), nil
}

// New returns the model of a CLB with its listeners, without groups.
func New(lb alicloud.LoadBalancer, listeners []alicloud.Listener) *model.Model {
	observed := &model.Model{LoadBalancer: lb}
	for _, listener := range listeners {
		observed.Listeners = append(observed.Listeners, model.Listener{
			ListenerKey: listener.ListenerKey, Description: listener.Description, GroupID: listener.VServerGroupID,
			Status: listener.Status, Attributes: listener.Attributes,
		})
	}
	return observed
}

// ErrContradiction says that the listeners and the groups of a CLB cannot both be as they were read.
var ErrContradiction = errors.New("what was read contradicts itself")

// checkComplete fails where a list of groups lacks one that a listener of the Service uses. The cloud deletes no such group, so that the
// list is not all there is, and a second group in its place would take over the listener.
func checkComplete(observed *model.Model, groups []alicloud.VServerGroup, service types.NamespacedName) error {
	for i := range observed.Listeners {
		listener := &observed.Listeners[i]
		marked, _, ok := mark.Parse(listener.Description)
		if !ok || marked != service || listener.GroupID == "" {
			continue
		}
		if !slices.ContainsFunc(groups, func(g alicloud.VServerGroup) bool { return g.ID == listener.GroupID }) {
			return fmt.Errorf("%w: the list of the groups of %s lacks %s, which listener %s uses", ErrContradiction, observed.LoadBalancer.ID,
				listener.GroupID, listener.ListenerKey)
		}
	}
	return nil
}

// Groups adds all groups of the Service with their backend servers, and on an existing CLB also those that no controller made: the
// Service may have backend servers in them.
func Groups(ctx context.Context, api Reader, observed *model.Model, service types.NamespacedName) (*model.Model, error) {
	lb := &observed.LoadBalancer
	groups, err := api.DescribeVServerGroups(ctx, lb.ID)
	if err != nil {
		return nil, fmt.Errorf("read the groups of %s: %w", lb.ID, err)
	}
	if err := checkComplete(observed, groups, service); err != nil {
		return nil, err
	}
	for _, group := range groups {
		marked, _, ok := mark.Parse(group.Name)
		if ok && marked != service || !ok && !observed.Reused {
			continue
		}
		full, err := api.DescribeVServerGroup(ctx, group.ID)
		if alicloud.IsNotFound(err) { // the next list decides
			return nil, fmt.Errorf("%w: the list of the groups of %s shows %s: %w", ErrContradiction, lb.ID, group.ID, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read the backend servers of group %s: %w", group.ID, err)
		}
		name := full.Name
		if !ok {
			name = full.ID
		}
		observed.Groups = append(observed.Groups, model.Group{ID: full.ID, Name: name, Backends: full.Backends})
	}
	return observed, nil
}

// Reader is the part of the cloud that observing calls. It writes nothing.
type Reader interface {
	DescribeLoadBalancers(ctx context.Context, query alicloud.LoadBalancerQuery) ([]alicloud.LoadBalancer, error)
	DescribeLoadBalancer(ctx context.Context, id string) (alicloud.LoadBalancer, error)
	DescribeListeners(ctx context.Context, loadBalancerIDs ...string) (map[string][]alicloud.Listener, error)
	DescribeVServerGroups(ctx context.Context, loadBalancerID string) ([]alicloud.VServerGroup, error)
	DescribeVServerGroup(ctx context.Context, id string) (alicloud.VServerGroup, error)
	DescribeAccessLists(ctx context.Context, tag alicloud.Tag) ([]alicloud.AccessList, error)
	DescribeAccessList(ctx context.Context, id string) (alicloud.AccessList, error)
	DescribeServerCertificate(ctx context.Context, id string) (alicloud.Certificate, bool, error)
	DescribeDomainExtensions(ctx context.Context, loadBalancerID string, port int) ([]alicloud.DomainExtension, error)
	DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error)
	DescribeEIPs(ctx context.Context, kind, id string) ([]alicloud.EIP, error)
	DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error)
}
