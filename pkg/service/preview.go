package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// Preview is the first plan for a Service: what a pass over it would write, as far as what is there now shows it.
type Preview struct {
	Service *corev1.Service
	// Plan leads to the load balancer that the Service is to have, nil for none. Steps are its steps, and those that remove what the
	// Service leaves.
	Plan  driver.Plan
	Steps []driver.Step
	// Follow says after what further steps follow that cannot be planned yet, empty where none are expected.
	Follow string
	// Problems are what the events of the Service would say.
	Problems []problem.Problem
	// Err is why the Service cannot be planned; then more may be to do than Steps.
	Err error

	// balancer is the load balancer as it was read, nil before that, and inputs are what its plan was made from. [Reconciler.Explain] shows
	// them.
	balancer driver.Balancer
	inputs   driver.Inputs

	// removed are the ids of load balancers on which the plan removes what the Service has: a Record may name one twice, by its id and by
	// its group.
	removed []string
}

// previewer plans one Service after the other. It has nothing to write with: its reconciler has no client for Services, and no plan is
// carried out.
type previewer struct {
	*Reconciler

	// creating and leaving are the locks of load balancers that Services share: one of them plans to create it, or to leave it.
	creating, leaving sets.Set[string]
}

func (r *Reconciler) newPreviewer() previewer {
	return previewer{
		Reconciler: &Reconciler{opts: r.opts, network: sources.Network{API: r.opts.Network, VPCID: r.opts.Config.VPCID}},
		creating:   sets.New[string](), leaving: sets.New[string](),
	}
}

// PreviewAll returns the first plan for each Service. It reads the cluster and the cloud, as a program does that has just started, and
// writes nothing. Each Service is planned with what is there now: of what another one is about to change, it sees nothing.
func (r *Reconciler) PreviewAll(ctx context.Context, services []*corev1.Service) ([]Preview, error) {
	p := r.newPreviewer()
	previews := make([]Preview, len(services))
	for i, svc := range slices.SortedFunc(slices.Values(services), driver.ByAge) {
		previews[i].Service = svc
		previews[i].Err = p.planService(ctx, svc, &previews[i])
		previews[i].Problems = problem.ByReason(previews[i].Problems)
		previews[i].inputs = driver.Inputs{} // those of thousands of Services would stay in memory
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return previews, nil
}

// planService plans a Service.
func (p previewer) planService(ctx context.Context, svc *corev1.Service, preview *Preview) error {
	if !p.opts.needsReconcile(svc) {
		return nil
	}
	svc, held, err := p.lockService(ctx, svc)
	if err != nil {
		return err
	}
	defer held.releaseAll()
	wants := p.opts.wantsBalancer(svc)
	switch {
	case wants && !p.opts.changesProduct(svc):
		return p.planWanted(ctx, svc.DeepCopy(), held, preview)
	case p.opts.handedOver(svc):
		preview.Problems = []problem.Problem{handOverProblem(svc, p.opts.engineOf(svc).Product())}
	case p.opts.hasFinalizer(svc):
		if wants {
			preview.Follow = "further steps follow once the load balancer that the Service has now is gone"
		}
		return p.planTearDown(ctx, svc, held, preview)
	}
	return nil
}

// planWanted plans a Service that wants a load balancer, and what it leaves for that.
func (p previewer) planWanted(ctx context.Context, svc *corev1.Service, held *locks, preview *Preview) error {
	known := p.stateOf(svc)
	adopted := known.carriesFinalizer(svc)
	addFinalizer(svc, known.engine) // in a pass, this is written before anything is read
	params, problems := p.readParams(known.engine, svc)
	preview.Problems = problems
	if err := checkBounds(svc); err != nil {
		return err
	}
	known, unread, err := p.refreshBalancer(ctx, svc, params, adopted, known, held)
	if err != nil {
		return err
	}
	if err = known.engine.Refuse(params); err != nil && known.balancer.ID() == "" {
		return err
	}
	inputs, decision, err := p.decidePlan(ctx, svc, params, known)
	known.lastValid = inputs.lastValid
	if err == nil && p.readGates(ctx, svc, inputs.cache.gates, len(inputs.cache.gates.pods), func(string) bool {
		return true
	}) == failure.AtOnce {
		known.cache = inputs.cache
		inputs, decision, err = p.decidePlan(ctx, svc, params, known)
	}
	preview.Problems = append(preview.Problems, decision.Problems...)
	preview.balancer, preview.inputs = known.balancer, inputs.Inputs
	if err != nil {
		return err
	}
	preview.Plan, preview.Steps = decision.Plan, decision.Plan.Steps()
	if known.balancer.ID() == "" && held.balancer != "" && len(preview.Steps) > 0 {
		if p.creating.Has(held.balancer) {
			preview.Steps, preview.Follow = nil, "further steps follow once the load balancer exists"
		}
		p.creating.Insert(held.balancer)
	}
	return errors.Join(unread, inputs.unread, p.planLeaving(ctx, svc, known, held, preview))
}

// planLeaving plans what follows a move: the Service leaves where it was before.
func (p previewer) planLeaving(ctx context.Context, svc *corev1.Service, known state, held *locks, preview *Preview) error {
	mover, ok := known.balancer.(driver.Mover)
	if !ok {
		return nil
	}
	later := "once the Service shows the other load balancer"
	if grace := known.moveGrace(p.opts.MoveGrace); grace >= time.Second {
		later = fmt.Sprintf("once the Service has shown the other load balancer for %s", grace.Round(time.Second))
	}
	var errs []error
	for _, left := range mover.Left(svc) {
		before := len(preview.Steps)
		_, _, err := p.planRemoval(ctx, svc, left, known.engine, held, preview)
		for i := range preview.Steps[before:] {
			step := &preview.Steps[before+i]
			step.Later, step.Text = later, fmt.Sprintf("%s (%s)", step.Text, later)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// planTearDown plans a Service that no longer wants the load balancer that it has.
func (p previewer) planTearDown(ctx context.Context, svc *corev1.Service, held *locks, preview *Preview) error {
	known := p.stateOf(svc)
	var errs []error
	if mover, moves := known.balancer.(driver.Mover); moves {
		for _, left := range mover.Left(svc) {
			_, _, err := p.planRemoval(ctx, svc, left, known.engine, held, preview)
			errs = append(errs, err)
		}
	}
	found, removal, err := p.planRemoval(ctx, svc, known.balancer, known.engine, held, preview)
	if errs = append(errs, err); err == nil && !removal.Preserved {
		_, leftovers, err := found.PlanLeftovers(ctx, svc)
		errs = append(errs, unlessWaiting(err))
		for _, step := range leftovers.Steps() {
			if !slices.Contains(preview.Steps, step) {
				preview.Steps = append(preview.Steps, step)
			}
		}
	}
	if removal.Kept != "" {
		preview.Problems = append(preview.Problems, problem.Problem{Reason: problem.ReasonLoadBalancerKept, Message: removal.Kept})
	}
	return errors.Join(errs...)
}

// planRemoval adds the steps that remove what a Service has on a load balancer.
func (p previewer) planRemoval(
	ctx context.Context, svc *corev1.Service, on driver.Balancer, engine driver.Engine, held *locks, preview *Preview,
) (found driver.Balancer, removal driver.Removal, err error) {
	params, _ := engine.Params(svc)
	found, err = p.readLocked(ctx, svc, params, held, on, func(on driver.Balancer) (driver.Balancer, error) {
		return on.RefreshForRemoval(ctx, svc, nil)
	})
	if err = unlessWaiting(err); err != nil || found.ID() == "" || slices.Contains(preview.removed, found.ID()) {
		return found, removal, err
	}
	preview.removed = append(preview.removed, found.ID())
	if removal, err = found.PlanRemoval(svc, nil); err != nil {
		return found, removal, err
	}
	preview.Steps = append(preview.Steps, removal.Plan.Steps()...)
	if removal.Reused && !found.Reused() { // that of a group, which goes with the last Service
		if p.leaving.Has(held.balancer) && preview.Follow == "" {
			preview.Follow = fmt.Sprintf("further steps may follow once other Services have left %s %s, too",
				engine.Product().Name, removal.ID)
		}
		p.leaving.Insert(held.balancer)
	}
	return found, removal, nil
}

// unlessWaiting returns an error, but for one that only means that something is to be read once more before it is removed.
func unlessWaiting(err error) error {
	if errors.As(err, new(*problem.WaitError)) {
		return nil
	}
	return err
}
