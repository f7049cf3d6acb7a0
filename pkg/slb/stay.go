package slb

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// stayingParams are the annotations of a Service as if they named the existing CLB on which it stays, see [groups.Staying.Params].
func (o *observed) stayingParams(svc *corev1.Service, params annotation.Params) annotation.Params {
	return o.stays.Params(params, o.presence, slices.ContainsFunc(o.listeners.Value, func(l model.Listener) bool {
		owner, _, ok := mark.Parse(l.Description)
		return ok && owner == mark.ServiceName(svc)
	}))
}

// locateAsked returns the CLB that the annotation names. leaves is what a Service that was in a group leaves for it: the CLB of that first,
// and the group. While the Service may not use the one that is named, it stays in its group: elsewhere nothing would follow its nodes.
func (e *engine) locateAsked(
	ctx context.Context, svc *corev1.Service, params annotation.Params, asked string, leaves []string,
) (location, error) {
	lb, err := e.namedCLB(ctx, svc, asked)
	if err == nil && len(leaves) > 0 {
		err = e.admitWhole(ctx, svc, params, lb)
	}
	if refused, ok := errors.AsType[*problem.ConfigError](err); ok && len(leaves) > 0 {
		at := leaves[max(slices.IndexFunc(leaves, func(place string) bool { return !mark.IsGroup(place) }), 0)]
		stays, failure := e.stayUnlessReusable(ctx, svc, at, asked, refused)
		if stays.leaves = leaves; failure != nil || stays.presence.Present() {
			return stays, failure
		}
	}
	found := e.foundLocation(svc, lb, true)
	found.leaves = leaves
	return found, err
}

// asksToMove reports whether a Service in no group asks for another CLB than it is on, and may get another address.
func asksToMove(params annotation.Params, on presence.Presence) bool {
	asked := params.Get(annotation.LoadBalancerID)
	return on.Present() && params.Has(annotation.Move) && !params.Refused(annotation.LoadBalancerID) && asked != on.ID() &&
		(asked != "" || on.Reused())
}

// moveOutside returns the CLB that a Service in no group moves to: the one that its annotation names, else one of its own. While it may not
// use that one, or the cloud refuses it another one, it stays on the current one.
func (e *engine) moveOutside(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known observed, current location, adopted bool,
) (location, error) {
	id, asked := current.presence.ID(), params.Get(annotation.LoadBalancerID)
	leaves := known.knownPlace().ShownFirst(append([]string{id}, current.leaves...))
	if asked != "" {
		moved, err := e.locateAsked(ctx, svc, params, asked, leaves)
		if refused, ok := errors.AsType[*problem.ConfigError](err); ok {
			current.stays = e.shared.StayingUnlessReusable(svc, id, asked, refused)
			return current, nil
		}
		if err != nil { // it has not moved while the new place cannot be read
			return location{}, err
		}
		return moved, nil
	}
	own, _, err := e.findOwn(ctx, svc, id)
	if err != nil || own != nil {
		moved := e.foundLocation(svc, own, false)
		moved.leaves = leaves
		return moved, err
	}
	if refused := e.shared.OwnRefused(svc); refused != nil {
		current.stays = e.shared.StayingOnExisting(id, refused)
		return current, nil
	}
	had := known.presence
	if had.Present() { // it is that of the CLB that the Service leaves
		had = presence.Presence{}
	}
	record, _ := driver.RecordOn(svc)
	decided, err := e.decideAbsence(ctx, svc, observed{presence: had}, "", had.MaybeCreated() || adopted && len(record.Leaving) > 0)
	decided.leaves, decided.from = leaves, id
	return decided, err
}

// admitWhole fails if the Service may not use an existing CLB, whose listeners and groups it reads.
func (e *engine) admitWhole(ctx context.Context, svc *corev1.Service, params annotation.Params, lb *alicloud.LoadBalancer) error {
	if err := e.checkExisting(ctx, svc, params, lb); err != nil {
		return err
	}
	actual, err := observe.All(ctx, e.api, *lb, mark.ServiceName(svc), true)
	if err != nil {
		return err
	}
	var clb observed
	clb.setObserved(actual)
	return e.admitContents(svc, &clb)
}

// stayUnlessReusable returns the CLB of a group with the id, if the Service is on it. A label alone does not prove that: whoever can edit
// Services can also set it.
func (e *engine) stayUnlessReusable(ctx context.Context, svc *corev1.Service, id, asked string, refused error) (location, error) {
	if mark.IsGroup(id) || id == asked {
		return location{}, nil
	}
	lb, err := e.readCLB(ctx, id)
	if err != nil || lb == nil {
		return location{}, err
	}
	group, in := groupOn(lb)
	if !in {
		return location{}, nil
	}
	if on, err := e.marksOn(ctx, svc, lb); err != nil || !on {
		return location{}, err
	}
	return location{presence: presence.Found(lb.ID, false), lb: *lb, group: group,
		stays: e.shared.StayingUnlessReusable(svc, lb.ID, asked, refused)}, nil
}

// noteCreation remembers whether the cloud takes one more CLB, see [groups.Groups.Creation].
func (c *clb) noteCreation(svc *corev1.Service, done model.Plan, refused, err error) (goesBack bool, failure error) {
	goesBack, failure = c.shared.Creation(svc, c.knownPlace(), groups.Outcome{
		Refused: refused, Err: err,
		Created: c.ID() != "" && done.Has(model.OpCreateLoadBalancer), Deleted: done.Has(model.OpDeleteLoadBalancer),
	})
	if goesBack {
		c.loadBalancer.Invalidate("the cloud does not allow another CLB")
	}
	return goesBack, failure
}
