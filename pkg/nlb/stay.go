package nlb

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// stayBefore returns the NLB of a group, or the existing one, that a Service is to leave for one of its own, while it cannot get that.
func (e *engine) stayBefore(ctx context.Context, svc *corev1.Service, id string) (location, error) {
	refused := e.shared.OwnRefused(svc)
	if refused == nil {
		return location{}, nil
	}
	lb, err := e.readNLB(ctx, id)
	if err != nil || lb == nil {
		return location{}, err
	}
	if group, in := groupOn(lb); in {
		return location{presence: presence.Found(lb.ID, false), lb: *lb, group: group,
			stays: e.shared.StayingRefused(lb.ID, mark.Group{}, refused)}, nil
	}
	if reason := e.refusedByPolicy(svc, lb); reason != "" {
		return location{}, errNotReusable(lb.ID, reason)
	}
	existing := e.foundLocation(svc, lb, true)
	existing.stays = e.shared.StayingOnExisting(id, refused)
	return existing, nil
}

// orStays keeps a Service in the group that it leaves while it may not use the load balancer that its annotation names: elsewhere nothing
// would follow its nodes.
func (e *engine) orStays(ctx context.Context, of driver.Request, asked location, err error) (location, error) {
	refused, ok := errors.AsType[*problem.ConfigError](err)
	if !ok || asked.presence.MaybeCreated() { // one of its own that may be there would be forgotten
		return asked, err
	}
	stays, failure := e.stayUnlessReusable(ctx, of.Service, asked.leaves[0], of.Params.Get(annotation.LoadBalancerID), refused)
	if failure != nil || stays.presence.Present() {
		stays.askedMissing = asked.askedMissing
		return stays, failure
	}
	return asked, err
}

// stayInGroup returns the NLB of a group that is one of the places which the Service has begun to leave, if it is still on that.
func (e *engine) stayInGroup(ctx context.Context, svc *corev1.Service, left []string, asked string, refused error) (location, error) {
	for _, id := range left {
		if mark.IsGroup(id) || id == asked {
			continue
		}
		if stays, err := e.stayUnlessReusable(ctx, svc, id, asked, refused); err != nil || stays.presence.Present() {
			return stays, err
		}
	}
	return location{}, nil
}

// stayUnlessReusable returns the NLB of a group with the id, if the Service is on it. A Record alone does not prove that: it is written
// before the listeners.
func (e *engine) stayUnlessReusable(ctx context.Context, svc *corev1.Service, id, asked string, refused error) (location, error) {
	lb, err := e.readNLB(ctx, id)
	if err != nil || lb == nil {
		return location{}, err
	}
	group, in := groupOn(lb)
	if !in {
		return location{}, nil
	}
	listeners, err := e.api.ListNLBListeners(ctx, []string{lb.ID})
	if err != nil || !e.wasOn(svc, lb, listeners) {
		return location{}, err
	}
	return location{presence: presence.Found(lb.ID, false), lb: *lb, group: group,
		stays: e.shared.StayingUnlessReusable(svc, lb.ID, asked, refused)}, nil
}

// stayingParams are the annotations of a Service as if they named the existing NLB on which it stays, see [groups.Staying.Params].
func (n *nlb) stayingParams(svc *corev1.Service, params annotation.Params) annotation.Params {
	return n.stays.Params(params, n.presence, n.hasListener(svc))
}
