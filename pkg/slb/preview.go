package slb

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Preview returns what a pass over the Service would write, and writes nothing. It reads the cloud as a program does that
// has just started.
func (r *Reconciler) Preview(ctx context.Context, svc *corev1.Service) (Plan, error) {
	known := &memory{uid: svc.UID, marked: held(svc)}
	switch {
	case wantsLoadBalancer(r.opts.Config, svc):
		params, problems := paramsOf(svc)
		if err := r.refuse(params); err != nil {
			return Plan{Problems: problems}, err
		}
		if err := r.look(ctx, svc, params, known); err != nil {
			return Plan{Problems: problems}, err
		}
		out := outcome{problems: append(problems, placement(known.actual, params)...)}
		plan, err := r.plan(ctx, svc, known, params, &out)
		plan.Problems = byReason(out.problems)
		return plan, err
	case Served(svc):
		return Plan{Problems: []Problem{handedOver(svc)}}, nil
	case held(svc):
		if err := r.lookForRemoval(ctx, svc, known); err != nil || known.actual == nil {
			return Plan{}, err
		}
		return r.removalPlan(svc, known)
	}
	return Plan{}, nil
}
