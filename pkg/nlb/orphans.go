package nlb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements service.Engine: load balancers, server groups and security groups with the cluster's tag.
func (e *engine) Orphans(ctx context.Context, services []*corev1.Service) ([]service.Orphan, error) {
	cluster := alicloud.Tag{Key: mark.TagCluster, Value: e.config.ClusterID}
	found := census{owners: map[string]bool{}}
	for _, svc := range services {
		found.owners[mark.DefaultName(svc.UID)] = true
	}
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &cluster})
	if err != nil {
		return nil, fmt.Errorf("read all NLBs of the cluster: %w", err)
	}
	for i := range balancers {
		found.tagged(service.OrphanLoadBalancer, balancers[i].ID, balancers[i].Name, balancers[i].Tags)
	}
	groups, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &cluster})
	if err != nil {
		return nil, fmt.Errorf("read all server groups of the cluster: %w", err)
	}
	for i := range groups {
		found.tagged(service.OrphanServerGroup, groups[i].ID, groups[i].Name, groups[i].Tags)
	}
	access, err := e.api.DescribeSecurityGroups(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("read all security groups of the cluster: %w", err)
	}
	for i := range access {
		found.tagged(service.OrphanSecurityGroup, access[i].ID, access[i].Name, access[i].Tags)
	}
	return found.orphans, nil
}

// census collects what no Service owns. Owners are the values of the owner tag of the Services that there are.
type census struct {
	owners  map[string]bool
	orphans []service.Orphan
}

func (c *census) tagged(kind, id, name string, tags []alicloud.Tag) {
	for _, tag := range tags {
		if tag.Key == mark.TagOwner && !c.owners[tag.Value] {
			c.orphans = append(c.orphans, service.Orphan{Kind: kind, ID: id, Name: name, Reason: "no Service has the UID of the tag " + mark.TagOwner + "=" + tag.Value})
		}
	}
}
