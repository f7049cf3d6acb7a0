package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// stayingParams are the annotations of a Service as if they named the existing CLB on which it stays, see [groups.Staying.Params].
func (o *observed) stayingParams(svc *corev1.Service, params annotation.Params) annotation.Params {
	return o.stays.Params(params, o.presence, slices.ContainsFunc(o.listeners.Value, func(l model.Listener) bool {
		owner, _, ok := mark.Parse(l.Description)
		return ok && owner == mark.ServiceName(svc)
	}))
}

// noteCreation remembers whether the cloud takes one more CLB, see [groups.Groups.Creation].
func (c *clb) noteCreation(svc *corev1.Service, done model.Plan, refused, err error) error {
	goesBack, err := c.shared.Creation(svc, c.group, groups.Outcome{
		From: c.from, Refused: refused, MaybeCreated: c.presence.MaybeCreated(), Err: err,
		Created: c.ID() != "" && done.Has(model.OpCreateLoadBalancer), Deleted: done.Has(model.OpDeleteLoadBalancer),
	})
	if goesBack {
		c.loadBalancer.Invalidate("the cloud does not allow another CLB")
	}
	return err
}
