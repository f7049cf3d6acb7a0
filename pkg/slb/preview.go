package slb

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Preview returns what a pass over the Service would write, and writes nothing. It reads the cloud as a program does that
// has just started.
func (r *Reconciler) Preview(ctx context.Context, svc *corev1.Service) (model.Plan, error) {
	known := &memory{uid: svc.UID, marked: held(svc)}
	switch {
	case wantsLoadBalancer(r.opts.Config, svc):
		params, problems := annotation.Of(svc)
		if err := r.refuse(params); err != nil {
			return model.Plan{Problems: problems}, err
		}
		if err := r.look(ctx, svc, params, known); err != nil {
			return model.Plan{Problems: problems}, err
		}
		out := outcome{problems: append(problems, placement(known.actual, params)...)}
		plan, err := r.plan(ctx, svc, known, params, &out)
		plan.Problems = problem.ByReason(out.problems)
		return plan, err
	case Served(svc):
		return model.Plan{Problems: []problem.Problem{handedOver(svc)}}, nil
	case held(svc):
		if err := r.lookForRemoval(ctx, svc, known); err != nil || known.actual == nil {
			return model.Plan{}, err
		}
		return r.removalPlan(svc, known)
	}
	return model.Plan{}, nil
}
