package slb

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

var _ driver.Follower = clb{}

// Follows implements driver.Mover. The vServer groups of a CLB are its own, so that those of the old one need passes, too. A new process
// that cannot read the listeners has no plan for the CLB that the Service is on: marks show the groups of its ports.
func (c clb) Follows(svc *corev1.Service, when driver.Stage) []driver.Follower {
	shown := cmp.Or(c.Showing, svc.Labels[driver.LabelLoadBalancerID])
	var follows []driver.Follower
	for _, left := range c.Left(svc) {
		if former, ok := left.(clb); ok && (former.former == shown || when == driver.Moved && !mark.IsGroup(former.former)) {
			follows = append(follows, former)
		}
	}
	if when == driver.Unplanned && c.Presence.Present() && !c.listeners.Known() {
		follows = append(follows, clb{engine: c.engine, former: c.ID()})
	}
	return follows
}

// RefreshBackends implements driver.Follower. Nobody keeps what was read: few passes are made while a Service moves.
func (c clb) RefreshBackends(ctx context.Context, svc *corev1.Service) (driver.Follower, error) {
	found := clb{engine: c.engine, former: c.former}
	lb, err := c.readCLB(ctx, c.former)
	if err != nil || lb == nil {
		return found, err
	}
	found.Group, _ = c.shared.GroupOn(lb) // on that of another cluster, marks with its ID are of its Services
	listeners, err := c.api.DescribeListeners(ctx, lb.ID)
	if err != nil && !driver.IsUnread(err) {
		return found, err
	}
	actual := observe.New(*lb, listeners[lb.ID])
	actual.Reused = found.Group.IsZero() && !driver.OwnedBy(svc, lb.Tags)
	if actual, err = observe.Groups(ctx, c.api, actual, mark.ServiceName(svc)); err == nil {
		found.setObserved(actual)
	}
	return found, err
}

// PlanBackends implements driver.Follower.
func (c clb) PlanBackends(in driver.Inputs) driver.Plan {
	clusterID, proven := c.markedOn(in.Service, serverOf(in))
	if !proven { // what is there may be another cluster's
		return followUp{plan{clb: c, desired: &model.Model{}}}
	}
	desired := build.Followed(c.buildInput(in))
	return followUp{plan{clb: c, desired: desired, Plan: diff.Followed(desired, c.wholeModel(), mark.ServiceName(in.Service), clusterID)}}
}

// followUp is a plan for backend servers on a CLB that a Service leaves. It says nothing of the CLB that the Service is on.
type followUp struct{ plan }

// Deploy implements driver.Plan.
func (f followUp) Deploy(ctx context.Context, svc *corev1.Service, _ driver.Create) driver.Deployment {
	observed := f.clb.wholeModel()
	applier := deploy.New(f.clb.api, &f.clb.answers, observed)
	if most, known := f.clb.mostServers(svc); known {
		applier.Limit(most)
	}
	err := applier.Run(ctx, f.Plan)
	after := f.clb.withKnown(f.clb.afterDeployment(deployment{model: observed, doubts: applier.Doubts, lost: applier.Lost}))
	after.noteServers(svc)
	return driver.Deployment{
		Balancer: after, Writes: applier.Writes, Progress: applier.Progress, Uncertain: len(applier.Doubts) > 0,
		RefusedBackend: applier.RefusedServer,
		Interrupted:    applier.Interrupted, Shared: f.sharedGroups(), Err: err,
		Registered: func(address string) bool { return !model.IsMissing(address, f.desired, observed) },
	}
}
