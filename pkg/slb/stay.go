package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
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

// noteCreation remembers whether the cloud takes one more CLB. A Service that was refused one and has another place goes back to that at once.
func (c *clb) noteCreation(svc *corev1.Service, done model.Plan, refused error, err error) error {
	if refused != nil && c.from != "" && !c.presence.MaybeCreated() && !c.shared.MaybeMade(c.group) {
		c.loadBalancer.Invalidate("the cloud refuses another CLB")
		return c.shared.NoteRefused(svc, c.group, c.from, refused)
	}
	did := func(op model.Op) bool {
		return slices.ContainsFunc(done.Steps, func(s model.Step) bool { return s.Op == op })
	}
	switch {
	case err == nil && did(model.OpDeleteLoadBalancer):
		c.shared.NoteDeleted()
	case c.ID() != "" && did(model.OpCreateLoadBalancer):
		c.shared.NoteCreated(svc, c.group)
	}
	return err
}
