package nlb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements service.Engine: load balancers, server groups and security groups with a tag of the cluster.
func (e *engine) Orphans(ctx context.Context, query service.OrphanQuery) ([]service.Orphan, error) {
	found := census{owners: map[string]bool{}}
	for _, svc := range query.Services {
		found.owners[mark.DefaultName(svc.UID)] = true
	}
	var errs []error
	for _, kind := range []func(context.Context, string, *census) error{e.orphanBalancers, e.orphanGroups, e.orphanAccess} {
		for _, id := range sets.List(sets.New(query.ClusterIDs...).Insert(e.config.ClusterID)) {
			if err := kind(ctx, id, &found); err != nil {
				errs = append(errs, err)
				break // the next one would fail, too
			}
		}
	}
	if query.Preserved {
		kept, err := e.preserved(ctx, query)
		found.orphans, errs = append(found.orphans, kept...), append(errs, err)
	}
	return found.orphans, errors.Join(errs...)
}

// orphanBalancers adds load balancers with the tag of a cluster and that of a Service which does not exist.
func (e *engine) orphanBalancers(ctx context.Context, clusterID string, found *census) error {
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &alicloud.Tag{Key: mark.TagCluster, Value: clusterID}})
	if err != nil {
		return fmt.Errorf("read all NLBs of the cluster: %w", err)
	}
	for i := range balancers {
		lb := &balancers[i]
		found.tagged(service.Orphan{Kind: service.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, ClusterID: clusterID, Delete: deleteNLB(lb)}, lb.Tags)
	}
	return nil
}

func (e *engine) orphanGroups(ctx context.Context, clusterID string, found *census) error {
	groups, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &alicloud.Tag{Key: mark.TagCluster, Value: clusterID}})
	if err != nil {
		return fmt.Errorf("read all server groups of the cluster: %w", err)
	}
	for i := range groups {
		found.tagged(service.Orphan{
			Kind: service.OrphanServerGroup, ID: groups[i].ID, Name: groups[i].Name, ClusterID: clusterID,
			Delete: []string{"aliyun nlb DeleteServerGroup --ServerGroupId " + groups[i].ID},
		}, groups[i].Tags)
	}
	return nil
}

func (e *engine) orphanAccess(ctx context.Context, clusterID string, found *census) error {
	access, err := e.api.DescribeSecurityGroups(ctx, alicloud.Tag{Key: mark.TagCluster, Value: clusterID})
	if err != nil {
		return fmt.Errorf("read all security groups of the cluster: %w", err)
	}
	for i := range access {
		found.tagged(service.Orphan{
			Kind: service.OrphanSecurityGroup, ID: access[i].ID, Name: access[i].Name, ClusterID: clusterID,
			Delete: []string{"aliyun ecs DeleteSecurityGroup --SecurityGroupId " + access[i].ID},
		}, access[i].Tags)
	}
	return nil
}

// census collects what no Service owns. Owners are the values of the owner tag of the Services that there are.
type census struct {
	owners  map[string]bool
	orphans []service.Orphan
}

func (c *census) tagged(orphan service.Orphan, tags []alicloud.Tag) {
	for _, tag := range tags {
		if tag.Key == mark.TagOwner && !c.owners[tag.Value] {
			orphan.Reason = "no Service has the UID of the tag " + mark.TagOwner + "=" + tag.Value
			c.orphans = append(c.orphans, orphan)
		}
	}
}

// preserved returns the NLBs that stayed for their users, and that no Service uses.
func (e *engine) preserved(ctx context.Context, query service.OrphanQuery) ([]service.Orphan, error) {
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &alicloud.Tag{Key: mark.TagPreserved}})
	if err != nil {
		return nil, fmt.Errorf("read all NLBs with the tag %s: %w", mark.TagPreserved, err)
	}
	used := sets.New[string]()
	for _, svc := range query.Services {
		params, _ := e.Params(svc)
		used.Insert(svc.Labels[service.LabelLoadBalancerID], params.Get(annotation.LoadBalancerID))
	}
	var orphans []service.Orphan
	for i := range balancers {
		lb := &balancers[i]
		value, _ := lb.Tag(mark.TagPreserved)
		clusterID, name, _ := strings.Cut(value, "/")
		if clusterID != e.config.ClusterID && !slices.Contains(query.ClusterIDs, clusterID) || used.Has(lb.ID) || hasTag(lb, mark.TagOwner) {
			continue
		}
		orphans = append(orphans, service.Orphan{
			Kind: service.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, ClusterID: clusterID, Delete: deleteNLB(lb),
			Reason: fmt.Sprintf("Service %s left it with the annotation %s", name, annotation.PreserveOnDelete),
		})
	}
	return orphans, nil
}

// deleteNLB returns the commands that delete an NLB: its protection goes first.
func deleteNLB(lb *alicloud.NLB) []string {
	var commands []string
	if lb.DeletionProtection {
		commands = append(commands, "aliyun nlb UpdateLoadBalancerProtection --LoadBalancerId "+lb.ID+" --DeletionProtectionEnabled false")
	}
	return append(commands, "aliyun nlb DeleteLoadBalancer --LoadBalancerId "+lb.ID)
}
