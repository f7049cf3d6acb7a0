package nlb

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// RefreshForRemoval implements service.Balancer.
func (n nlb) RefreshForRemoval(ctx context.Context, svc *corev1.Service, _ *service.Record) (service.Balancer, error) {
	n.settle(svc)
	n.unread = map[model.Part]error{}
	if failures := errors.Join(n.failures...); failures != nil {
		n.failures = nil
		return n, failures // the next pass reads what is there and goes on
	}
	if err := n.waitToRemove(); err != nil {
		return n, err
	}
	if proven := n.presence.Gone() && n.presence.WasDeleted(); !proven && (!n.lb.Trusted() || n.presence.Unknown()) {
		if err := n.locateForRemoval(ctx, svc); err != nil {
			return n, err
		}
		if n.presence.Present() && n.lb.Value.Status == alicloud.NLBProvisioning {
			n.awaitCreation(svc)
			return n, n.waiting("the NLB is being created")
		}
	}
	if err := n.readForRemoval(ctx, svc); err != nil {
		return n, err
	}
	return n, nil
}

// waitToRemove returns an error while jobs keep the load balancer busy. One that is being created is waited for once it was found.
func (n *nlb) waitToRemove() error {
	switch {
	case !n.busy(model.TargetLoadBalancer):
		return nil
	case n.presence.Present() && n.lb.Value.Status == alicloud.NLBDeleting:
		return n.waiting("the NLB is being deleted")
	case len(n.jobs) > 0:
		return n.waiting("a job of the cloud is under way")
	}
	return nil
}

// readForRemoval reads the listeners and the groups. Unlike for other passes, what was read before does not do where a read fails:
// what is not known would be left behind.
func (n *nlb) readForRemoval(ctx context.Context, svc *corev1.Service) error {
	if n.presence.Present() && !n.listeners.Trusted() {
		listeners, err := observe.Listeners(ctx, n.api, n.ID(), false)
		if err != nil {
			return err
		}
		n.listeners.Set(listeners)
	}
	if n.groups.Trusted() || len(n.jobs) > 0 {
		return nil
	}
	params, _ := n.Params(svc)
	if err := n.readGroups(ctx, svc, params); err != nil {
		return err
	}
	return n.unread[model.PartGroups]
}

func (n *nlb) waiting(reason string) error {
	return &problem.WaitError{Reason: reason, For: cmp.Or(n.wait(), soonPoll)}
}

// locateForRemoval returns what is to be removed. What the annotations ask for counts less than what is there.
func (n *nlb) locateForRemoval(ctx context.Context, svc *corev1.Service) error {
	params, _ := n.Params(svc)
	lastID, asked := cmp.Or(n.presence.ID(), svc.Labels[service.LabelLoadBalancerID]), params.Get(annotation.LoadBalancerID)
	if n.presence.WasReleased() && asked == "" {
		return n.absent(ctx, svc, n.presence.ID(), false)
	}
	if found, err := n.locateOwned(ctx, svc, lastID); found || err != nil {
		return err
	}
	for _, id := range []string{lastID, asked} {
		lb, err := n.get(ctx, id)
		if err != nil {
			return err
		}
		if lb != nil && !hasTag(lb, mark.TagOwner) {
			n.see(svc, lb, true)
			return nil
		}
	}
	missed := n.mayHave(svc, lastID) || asked == "" && n.presence.Unknown()
	return n.absent(ctx, svc, lastID, missed)
}

// PlanRemoval implements service.Balancer. It deletes an NLB of ours; its listeners go with it. From an existing one it deletes what
// carries our mark. One that the author of the Service wants to keep only loses what binds it to us.
func (n nlb) PlanRemoval(svc *corev1.Service, applied *service.Record) (service.Removal, error) {
	params, _ := n.Params(svc)
	actual := n.model()
	removal := service.Removal{Plan: plan{nlb: n}, ID: n.ID(), Reused: n.Reused(), Preserved: params.Preserves(), Status: statusOf(&n.lb.Value, params)}
	switch {
	case removal.Reused && removal.Preserved:
	case removal.Reused:
		keys, err := n.removableTags(svc, n.ID(), n.record(applied, svc).TagKeys)
		if err != nil {
			return removal, err
		}
		removal.Plan = plan{nlb: n, Plan: diff.Leaving(actual, mark.OwnerOf(svc, n.clusterID()), keys)}
	case removal.Preserved:
		removal.Plan = plan{nlb: n, Plan: diff.Preserving(actual, mark.Preserved(svc, n.config.ClusterID))}
	default:
		removal.Plan = plan{nlb: n, Plan: diff.Deletion(actual)}
	}
	return removal, nil
}

// Removed implements service.Balancer. Groups and the security group outlive the load balancer.
func (n nlb) Removed(removal service.Removal) (known service.Balancer, leftovers bool) {
	n.presence = n.presence.AfterRelease("")
	return n, !removal.Preserved && (len(n.groups.Value) > 0 || n.access.Value != nil)
}

// PlanLeftovers implements service.Balancer.
func (n nlb) PlanLeftovers(ctx context.Context, svc *corev1.Service) (service.Balancer, service.Plan, error) {
	params, _ := n.Params(svc)
	if params.Preserves() {
		return n, plan{nlb: n}, nil
	}
	if len(n.jobs) > 0 {
		return n, plan{nlb: n}, n.waiting("a job of the cloud is under way")
	}
	n.unread = map[model.Part]error{}
	if err := n.readGroups(ctx, svc, params); err != nil {
		return n, plan{nlb: n}, err
	}
	record, _ := service.RecordOn(svc)
	if mayHaveAccess(svc, record) || n.access.Value != nil {
		if err := n.searchAccess(ctx, svc); err != nil {
			return n, plan{nlb: n}, err
		}
	}
	leftovers := &model.Model{Groups: n.groups.Value, Access: n.access.Value, Strays: n.strays}
	return n, plan{nlb: n, Plan: diff.Leftovers(leftovers, mark.OwnerOf(svc, n.clusterID()))}, nil
}
