package slb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// orphansOfGroups adds CLBs of groups without Services, and what is left of Services on the others. Where a Service has left something on
// purpose, it adds nothing unless the query asks for that: nobody can tell that apart from what else is left.
func (e *engine) orphansOfGroups(ctx context.Context, query driver.OrphanQuery, census *census) error {
	balancers, err := e.taggedCLBs(ctx, mark.TagGroup)
	if err != nil {
		return err
	}
	var errs []error
	for i := range balancers {
		lb := &balancers[i]
		if _, preserved := lb.Tag(mark.TagPreserved); preserved && !query.Preserved {
			continue
		}
		if group, ok := census.groupOn(lb); ok {
			census.groups[lb.ID] = group
			errs = append(errs, e.orphansOfGroup(ctx, lb, census))
		}
	}
	return errors.Join(errs...)
}

func (e *engine) orphansOfGroup(ctx context.Context, lb *alicloud.LoadBalancer, census *census) error {
	used, err := e.usedInGroup(ctx, lb, census)
	if err != nil {
		return err
	}
	if used {
		return e.orphansOn(ctx, lb, census)
	}
	group, orphan := census.groups[lb.ID], orphanOf(lb)
	orphan.ClusterID, orphan.Reason = group.ClusterID, fmt.Sprintf("no Service is in load balancer group %s", group)
	census.found = append(census.found, orphan)
	return nil
}

// usedInGroup reports whether a Service may be on the CLB of a group, or anybody else has a listener on it: the manager keeps such a CLB
// when the last Service of the group goes, and the command that deletes the CLB would end the traffic of that listener.
func (e *engine) usedInGroup(ctx context.Context, lb *alicloud.LoadBalancer, census *census) (bool, error) {
	if census.mayBeUsed(lb.ID) {
		return true, nil
	}
	listeners, err := e.api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return false, fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	return slices.ContainsFunc(listeners[lb.ID], func(l alicloud.Listener) bool {
		_, reason := census.reasonLeft(l.Description, lb.ID)
		return reason == ""
	}), nil
}

// groupOn returns the group of the cluster that shares the CLB.
func (c *census) groupOn(lb *alicloud.LoadBalancer) (mark.Group, bool) {
	group, ok := groupOn(lb)
	return group, ok && c.clusterIDs.Has(group.ClusterID)
}
