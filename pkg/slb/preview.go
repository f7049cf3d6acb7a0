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
	switch {
	case wantsLoadBalancer(r.opts.Config, svc):
		goal, problems, err := r.preview(ctx, svc)
		goal.plan.Problems = problem.ByReason(problems)
		return goal.plan, err
	case WantsLoadBalancer(svc):
		return model.Plan{Problems: []problem.Problem{handedOver(svc)}}, nil
	case hasFinalizer(svc):
		clb, err := r.clb.refreshForRemoval(ctx, svc, observed{}, nil)
		if err != nil || clb.model() == nil {
			return model.Plan{}, err
		}
		return r.clb.removalPlan(svc, clb, nil)
	}
	return model.Plan{}, nil
}

// preview makes the stages of [Reconciler.ensure] up to the plan.
func (r *Reconciler) preview(ctx context.Context, svc *corev1.Service) (planned, []problem.Problem, error) {
	params, problems := annotation.Of(svc)
	known := state{uid: svc.UID}
	found, err := r.clb.refresh(ctx, known.request(svc, params, hasFinalizer(svc)), known.clb)
	if err != nil {
		return planned{}, problems, err
	}
	known = known.refreshed(found, r.opts.ResyncPeriod)
	if err = r.clb.refuse(params); err != nil && known.clb.model() == nil {
		return planned{}, problems, err
	}
	problems = append(problems, placement(known.clb.model(), params)...)
	goal, err := r.decide(ctx, svc, params, known)
	return goal.planned, append(problems, goal.problems...), err
}
