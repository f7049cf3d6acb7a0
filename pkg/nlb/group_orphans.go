package nlb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// orphansOfGroups returns NLBs of groups without Services, and what is left of Services on the others. An NLB with listeners of anybody
// else is none: the manager keeps it when the last Service of the group goes, and the command that deletes it would end the traffic of
// these listeners. Where a Service has left something on purpose, it returns nothing unless the query asks for that: nobody can tell that
// apart from what else is left.
func (e *engine) orphansOfGroups(ctx context.Context, query driver.OrphanQuery, clusterIDs sets.Set[string]) ([]driver.Orphan, error) {
	candidates, err := e.taggedBalancers(ctx, alicloud.Tag{Key: mark.TagGroup})
	if err != nil {
		return nil, err
	}
	var orphans []driver.Orphan
	var errs []error
	for _, candidate := range candidates {
		group, ok := mark.ParseGroup(candidate.tagValue(mark.TagGroup))
		if !ok || !clusterIDs.Has(group.ClusterID) || candidate.tagValue(mark.TagPreserved) != "" && !query.Preserved {
			continue
		}
		found, unread := e.listenersOf(ctx, []string{candidate.ID})
		if unread != nil {
			errs = append(errs, unread)
			continue
		}
		here, listeners := onNLB(query.Services, candidate.ID, group), found[candidate.ID]
		if left := leftListeners(listeners, here, clusterIDs); len(here) > 0 || len(left) < len(listeners) {
			orphans = append(orphans, left...)
			continue
		}
		candidate.ClusterID, candidate.Reason = group.ClusterID, fmt.Sprintf("no Service is in load balancer group %s", group)
		orphans = append(orphans, candidate.Orphan)
	}
	return orphans, errors.Join(errs...)
}

// onNLB returns the names of the Services that may be on the NLB of a group.
func onNLB(services []*corev1.Service, id string, group mark.Group) []types.NamespacedName {
	var names []types.NamespacedName
	for _, svc := range services {
		if (Product.Wants(svc) || driver.HasFinalizer(svc, Finalizer)) && groups.MayBeOn(svc, id, group) {
			names = append(names, mark.ServiceName(svc))
		}
	}
	return names
}

// leftListeners returns the listeners of Services of the cluster that are not here.
func leftListeners(listeners []model.Listener, here []types.NamespacedName, clusterIDs sets.Set[string]) []driver.Orphan {
	var orphans []driver.Orphan
	for i := range listeners {
		listener := &listeners[i]
		text := model.Text(listener.Description)
		name, clusterID, ok := mark.ParseNLB(text)
		if !ok || !clusterIDs.Has(clusterID) || slices.Contains(here, name) {
			continue
		}
		orphans = append(orphans, driver.Orphan{
			Kind: driver.OrphanListener, ID: listener.ID, Name: text, In: listener.LoadBalancerID, ClusterID: clusterID,
			Reason: fmt.Sprintf("Service %s is not on this NLB", name),
			Delete: []string{"aliyun nlb DeleteListener --ListenerId " + listener.ID},
		})
	}
	return orphans
}
