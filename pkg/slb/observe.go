package slb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// find looks for the CLB of a Service by its owner tag, and returns nil when there is none. marked says that the Service
// may have had one before: then a CLB whose tag somebody removed is found by its name.
func find(ctx context.Context, api reader, svc *corev1.Service, marked bool) (*alicloud.LoadBalancer, error) {
	name := DefaultName(svc.UID)
	found, err := api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: tagOwner, Value: name}})
	if err != nil {
		return nil, fmt.Errorf("find the CLB of the Service: %w", err)
	}
	if len(found) == 0 && marked {
		if found, err = findByName(ctx, api, name); err != nil {
			return nil, err
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	default:
		return nil, &ConfigError{Field: "tag " + tagOwner, Reason: fmt.Sprintf("%d CLBs (%s, %s, …) have the value %s; which one is the Service's cannot be told",
			len(found), found[0].ID, found[1].ID, name)}
	}
}

func findByName(ctx context.Context, api reader, name string) ([]alicloud.LoadBalancer, error) {
	named, err := api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Name: name})
	if err != nil {
		return nil, fmt.Errorf("find the CLB of the Service by name: %w", err)
	}
	var found []alicloud.LoadBalancer
	for _, lb := range named {
		if _, tagged := lb.Tag(tagOwner); lb.Name == name && !tagged {
			found = append(found, lb)
		}
	}
	return found, nil
}

// observe reads everything of a CLB that a Service may have made. A read that fails is an error and never an empty set.
func observe(ctx context.Context, api reader, lb alicloud.LoadBalancer, service types.NamespacedName, reused bool) (*Model, error) {
	listeners, err := api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return nil, fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	model := newObserved(lb, listeners[lb.ID])
	model.Reused = reused
	return observeGroups(ctx, api, model, service)
}

func newObserved(lb alicloud.LoadBalancer, listeners []alicloud.Listener) *Model {
	model := &Model{LoadBalancer: lb}
	for _, listener := range listeners {
		model.Listeners = append(model.Listeners, Listener{
			ListenerKey: listener.ListenerKey, Description: listener.Description, GroupID: listener.VServerGroupID,
			Status: listener.Status, Attributes: listener.Attributes,
		})
	}
	return model
}

// observeGroups adds all groups of the Service with their members, and on a reused CLB those that no controller made: the
// Service may have members in them.
func observeGroups(ctx context.Context, api reader, model *Model, service types.NamespacedName) (*Model, error) {
	lb := &model.LoadBalancer
	groups, err := api.DescribeVServerGroups(ctx, lb.ID)
	if err != nil {
		return nil, fmt.Errorf("read the groups of %s: %w", lb.ID, err)
	}
	for _, group := range groups {
		marked, _, ok := parseMark(group.Name)
		if ok && marked != service || !ok && !model.Reused {
			continue
		}
		full, err := api.DescribeVServerGroup(ctx, group.ID)
		if alicloud.IsNotFound(err) {
			continue // went between the two reads
		}
		if err != nil {
			return nil, fmt.Errorf("read the members of group %s: %w", group.ID, err)
		}
		name := full.Name
		if !ok {
			name = full.ID
		}
		model.Groups = append(model.Groups, Group{ID: full.ID, Name: name, Backends: full.Backends})
	}
	return model, nil
}
