package service

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Preview returns what a pass over the Service would write, and writes nothing. It reads the cloud as a program does that has just
// started.
func (r *Reconciler) Preview(ctx context.Context, svc *corev1.Service) (Goal, error) {
	if !r.opts.needsReconcile(svc) {
		return Goal{Plan: nothing{}}, nil
	}
	engine := r.opts.engineOf(svc)
	switch {
	case r.opts.wants(svc) && !r.opts.changesProduct(svc):
		goal, err := r.preview(ctx, svc, state{uid: svc.UID, engine: engine, balancer: engine.Start()})
		goal.Problems = problem.ByReason(goal.Problems)
		return goal, err
	case r.opts.handedOver(svc):
		return Goal{Plan: nothing{}, Problems: []problem.Problem{handOverProblem(svc, engine.Product())}}, nil
	case r.opts.hasFinalizer(svc):
		balancer, err := engine.Start().RefreshForRemoval(ctx, svc, nil)
		if err != nil || balancer.ID() == "" {
			return Goal{Plan: nothing{}}, err
		}
		removal, err := balancer.PlanRemoval(svc, nil)
		return Goal{Plan: removal.Plan}, err
	}
	return Goal{Plan: nothing{}}, nil
}

// preview makes the stages of [Reconciler.ensure] up to the plan.
func (r *Reconciler) preview(ctx context.Context, svc *corev1.Service, known state) (Goal, error) {
	params, problems := r.read(known.engine, svc)
	if err := checkBounds(svc); err != nil {
		return Goal{Plan: nothing{}, Problems: problems}, err
	}
	found, err := known.balancer.Refresh(ctx, known.request(svc, params, known.has(svc)))
	if err != nil {
		return Goal{Plan: nothing{}, Problems: problems}, err
	}
	if err = known.engine.Refuse(params); err != nil && found.Balancer.ID() == "" {
		return Goal{Plan: nothing{}, Problems: problems}, err
	}
	known = known.refreshed(found, r.opts.ResyncPeriod)
	inputs, goal, err := r.decide(ctx, svc, params, known)
	if err == nil && r.readGates(ctx, svc, inputs.cache.gates, len(inputs.cache.gates.pods), func(string) bool { return true }) == atOnce {
		known.cache = inputs.cache
		_, goal, err = r.decide(ctx, svc, params, known)
	}
	goal.Problems = append(problems, goal.Problems...)
	return goal, errors.Join(err, inputs.unread)
}
