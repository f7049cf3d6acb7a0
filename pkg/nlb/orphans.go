package nlb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements service.Engine.
func (e *engine) Orphans(ctx context.Context, services []*corev1.Service) ([]service.Orphan, error) {
	owners := map[string]bool{}
	for _, svc := range services {
		owners[mark.DefaultName(svc.UID)] = true
	}
	cluster := &alicloud.Tag{Key: mark.TagCluster, Value: e.config.ClusterID}
	var orphans []service.Orphan
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: cluster})
	if err != nil {
		return nil, fmt.Errorf("read all NLBs of the cluster: %w", err)
	}
	for i := range balancers {
		lb := &balancers[i]
		if owner, ok := lb.Tag(mark.TagOwner); ok && !owners[owner] {
			orphans = append(orphans, service.Orphan{Kind: service.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, Reason: unowned(owner)})
		}
	}
	groups, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: cluster})
	if err != nil {
		return nil, fmt.Errorf("read all server groups of the cluster: %w", err)
	}
	for i := range groups {
		group := &groups[i]
		if owner, ok := group.Tag(mark.TagOwner); ok && !owners[owner] {
			orphans = append(orphans, service.Orphan{Kind: service.OrphanServerGroup, ID: group.ID, Name: group.Name, Reason: unowned(owner)})
		}
	}
	return orphans, nil
}

func unowned(owner string) string {
	return "no Service has the UID of the tag " + mark.TagOwner + "=" + owner
}
