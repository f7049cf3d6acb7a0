package slb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements service.Engine: CLBs and access control lists with the cluster's tag, and on existing CLBs listeners, vServer
// groups and backend servers. What carries the mark of another cluster, or none, is left out.
func (e *engine) Orphans(ctx context.Context, services []*corev1.Service) ([]service.Orphan, error) {
	census := newCensus(services, e.config.ClusterID)
	balancers, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: mark.TagOwner}})
	if err != nil {
		return nil, fmt.Errorf("read all CLBs with the tag %s: %w", mark.TagOwner, err)
	}
	for i := range balancers {
		census.tagged(service.OrphanLoadBalancer, balancers[i].ID, balancers[i].Name, balancers[i].Tags)
	}
	lists, err := e.api.DescribeAccessLists(ctx, alicloud.Tag{Key: mark.TagOwner})
	if err != nil {
		return nil, fmt.Errorf("read all access control lists with the tag %s: %w", mark.TagOwner, err)
	}
	for _, list := range lists {
		census.tagged(service.OrphanAccessList, list.ID, list.Name, list.Tags)
	}
	shared, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: mark.TagReused}})
	if err != nil {
		return nil, fmt.Errorf("read all CLBs with the tag %s: %w", mark.TagReused, err)
	}
	for i := range shared {
		if err := e.orphansOn(ctx, &shared[i], census); err != nil {
			return nil, err
		}
	}
	return census.found, nil
}

// orphansOn adds what carries the mark of the cluster on an existing CLB.
func (e *engine) orphansOn(ctx context.Context, lb *alicloud.LoadBalancer, census *census) error {
	listeners, err := e.api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	for _, listener := range listeners[lb.ID] {
		census.marked(service.Orphan{Kind: service.OrphanListener, ID: listener.ListenerKey.String(), Name: listener.Description, In: lb.ID}, listener.Description, lb.ID)
	}
	groups, err := e.api.DescribeVServerGroups(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the groups of %s: %w", lb.ID, err)
	}
	for _, group := range groups {
		if _, _, ok := mark.Parse(group.Name); ok {
			census.marked(service.Orphan{Kind: service.OrphanGroup, ID: group.ID, Name: group.Name, In: lb.ID}, group.Name, lb.ID)
			continue
		}
		full, err := e.api.DescribeVServerGroup(ctx, group.ID)
		if alicloud.IsNotFound(err) {
			continue // went between the two reads
		}
		if err != nil {
			return fmt.Errorf("read the backend servers of group %s: %w", group.ID, err)
		}
		for _, server := range full.Backends {
			census.marked(service.Orphan{Kind: service.OrphanBackend, ID: server.String(), Name: server.Description, In: group.ID}, server.Description, lb.ID)
		}
	}
	return nil
}

// census knows the Services that may own something, and collects what none of them owns.
type census struct {
	clusterID string
	byTag     map[string]*corev1.Service
	byName    map[types.NamespacedName]*corev1.Service
	found     []service.Orphan
}

func newCensus(services []*corev1.Service, clusterID string) *census {
	c := &census{clusterID: clusterID, byTag: map[string]*corev1.Service{}, byName: map[types.NamespacedName]*corev1.Service{}, found: []service.Orphan{}}
	for _, svc := range services {
		c.byTag[mark.DefaultName(svc.UID)], c.byName[mark.ServiceName(svc)] = svc, svc
	}
	return c
}

// tagged adds a resource whose tag names a Service, unless the Service owns it.
func (c *census) tagged(kind, id, name string, tags []alicloud.Tag) {
	values := map[string]string{}
	for _, tag := range tags {
		values[tag.Key] = tag.Value
	}
	if values[mark.TagCluster] != c.clusterID {
		return
	}
	orphan := service.Orphan{Kind: kind, ID: id, Name: name}
	svc := c.byTag[values[mark.TagOwner]]
	switch {
	case svc == nil:
		orphan.Reason = "the Service with the tag " + values[mark.TagOwner] + " does not exist"
	case !Product.Wants(svc) && !service.HasFinalizer(svc, Finalizer):
		orphan.Reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", mark.ServiceName(svc))
	default:
		return
	}
	c.found = append(c.found, orphan)
}

// marked adds something on an existing CLB whose mark names a Service, unless the Service owns it.
func (c *census) marked(orphan service.Orphan, text, loadBalancerID string) {
	name, clusterID, ok := mark.Parse(text)
	if !ok || clusterID != c.clusterID {
		return
	}
	svc := c.byName[name]
	switch {
	case svc == nil:
		orphan.Reason = fmt.Sprintf("Service %s does not exist", name)
	case !Product.Wants(svc) && !service.HasFinalizer(svc, Finalizer):
		orphan.Reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", name)
	case !mayBeOn(svc, loadBalancerID):
		orphan.Reason = fmt.Sprintf("Service %s is on another CLB", name)
	default:
		return
	}
	c.found = append(c.found, orphan)
}

// mayBeOn reports whether the Service says that it is, or is to be, on the CLB.
func mayBeOn(svc *corev1.Service, loadBalancerID string) bool {
	params, _ := annotation.Parse(svc.Annotations)
	return svc.Labels[service.LabelLoadBalancerID] == loadBalancerID || params.Get(annotation.LoadBalancerID) == loadBalancerID
}
