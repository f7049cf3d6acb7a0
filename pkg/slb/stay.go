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
	return o.Stays.Params(params, o.Presence, slices.ContainsFunc(o.listeners.Value, func(l model.Listener) bool {
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
		if at := leaves[max(slices.IndexFunc(leaves, func(place string) bool { return !mark.IsGroup(place) }), 0)]; at != asked {
			stays, failure := e.shared.StayUnlessReusable(ctx, svc, at, asked, refused)
			if stays.Leaves = leaves; failure != nil || stays.Presence.Present() {
				return stays, failure
			}
		}
	}
	found := e.shared.FoundAt(svc, lb, true)
	found.Leaves = leaves
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
	id, asked := current.Presence.ID(), params.Get(annotation.LoadBalancerID)
	leaves := known.Known.ShownFirst(append([]string{id}, current.Leaves...))
	if asked != "" {
		moved, err := e.locateAsked(ctx, svc, params, asked, leaves)
		if refused, ok := errors.AsType[*problem.ConfigError](err); ok {
			current.Stays = e.shared.StayingUnlessReusable(svc, id, asked, refused)
			return current, nil
		}
		if err != nil { // it has not moved while the new place cannot be read
			return location{}, err
		}
		return moved, nil
	}
	own, _, err := e.findOwn(ctx, svc, id)
	if err != nil || own != nil {
		moved := e.shared.FoundAt(svc, own, false)
		moved.Leaves = leaves
		return moved, err
	}
	if refused := e.shared.OwnRefused(svc); refused != nil {
		current.Stays = e.shared.StayingOnExisting(id, refused)
		return current, nil
	}
	had := known.Presence
	if had.Present() { // it is that of the CLB that the Service leaves
		had = presence.Presence{}
	}
	record, _ := driver.RecordOn(svc)
	decided, err := e.decideAbsence(ctx, svc, had, "", had.MaybeCreated() || adopted && len(record.Leaving) > 0)
	decided.Leaves, decided.From = leaves, id
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

// noteCreation remembers whether the cloud takes one more CLB, see [groups.Groups.Creation].
func (c *clb) noteCreation(svc *corev1.Service, done model.Plan, refused, err error) (goesBack bool, failure error) {
	goesBack, failure = c.shared.Creation(svc, c.Known, groups.Outcome{
		Refused: refused, Err: err,
		Created: c.ID() != "" && done.Has(model.OpCreateLoadBalancer), Deleted: done.Has(model.OpDeleteLoadBalancer),
	})
	if goesBack {
		c.loadBalancer.Invalidate("the cloud does not allow another CLB")
	}
	return goesBack, failure
}
