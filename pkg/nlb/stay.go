package nlb

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
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
	if _, in := mark.GroupOn(lb.Tags); in {
		return e.shared.FoundInGroup(lb, e.shared.StayingRefused(lb.ID, mark.Group{}, refused)), nil
	}
	if reason := e.refusedByPolicy(svc, lb); reason != "" {
		return location{}, errNotReusable(lb.ID, reason)
	}
	existing := e.shared.FoundAt(svc, lb, true)
	existing.Stays = e.shared.StayingOnExisting(id, refused)
	return existing, nil
}

// orStays keeps a Service in the group that it leaves while it may not use the load balancer that its annotation names: elsewhere nothing
// would follow its nodes.
func (e *engine) orStays(ctx context.Context, of driver.Request, asked location, err error) (location, error) {
	refused, ok := errors.AsType[*problem.ConfigError](err)
	if !ok || asked.Presence.MaybeCreated() { // one of its own that may be there would be forgotten
		return asked, err
	}
	stays, failure := e.shared.StayUnlessReusable(ctx, of.Service, asked.Leaves[0], of.Params.Get(annotation.LoadBalancerID), refused)
	if failure != nil || stays.Presence.Present() {
		stays.AskedMissing = asked.AskedMissing
		return stays, failure
	}
	return asked, err
}

// stayInGroup returns the NLB of a group that is one of the places which the Service has begun to leave, if it is still on that.
func (e *engine) stayInGroup(ctx context.Context, svc *corev1.Service, left []string, asked string, refused error) (location, error) {
	for _, id := range left {
		if id == asked {
			continue
		}
		if stays, err := e.shared.StayUnlessReusable(ctx, svc, id, asked, refused); err != nil || stays.Presence.Present() {
			return stays, err
		}
	}
	return location{}, nil
}

// stayingParams are the annotations of a Service as if they named the existing NLB on which it stays, see [groups.Staying.Params].
func (n *nlb) stayingParams(svc *corev1.Service, params annotation.Params) annotation.Params {
	return n.Stays.Params(params, n.Presence, n.hasListener(svc))
}
