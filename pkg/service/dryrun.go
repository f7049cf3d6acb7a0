package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// dryRun makes passes that write nothing, neither to the cloud nor to the cluster: what they would write, only they see. A Service of a group is planned
// with the load balancer that the first one of the group would get, and with the ports that others would have by then.
type dryRun struct {
	*Reconciler

	// services are the Services of the cluster as the passes would leave them.
	services cache.Indexer
	// plans are those of the pass under way, steps what they do, and failed says that some of that was not carried out. later is [Step.Later].
	plans  []Plan
	steps  []Step
	failed bool
	later  string
}

// dryServices are the Services as a dry run would leave them.
type dryServices struct {
	coreinformers.ServiceInformer

	lister corelisters.ServiceLister
}

// Lister implements the informer.
func (s dryServices) Lister() corelisters.ServiceLister { return s.lister }

// dryRun returns one in which no pass was made yet. Some Services may be missing in the cache.
func (r *Reconciler) dryRun(some []*corev1.Service) (*dryRun, error) {
	all, err := r.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	d := &dryRun{services: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	for _, svc := range slices.Concat(all, some) {
		if err := d.services.Add(svc); err != nil {
			return nil, fmt.Errorf("note Service %s: %w", mark.ServiceName(svc), err)
		}
	}
	lister := corelisters.NewServiceLister(d.services)
	opts := r.opts
	opts.Services = dryServices{opts.Services, lister}
	opts.Engines = nil
	for _, engine := range r.opts.Engines {
		opts.Engines = append(opts.Engines, engine.DryRun(lister))
	}
	d.Reconciler = &Reconciler{opts: opts, writer: serviceWriter{local: d.services}, network: network{api: opts.Network, vpcID: opts.Config.VPCID}}
	d.dry = d
	return d, nil
}

// pass makes one pass over a Service. It returns the steps that it carries out, and what the events of the Service would say.
func (d *dryRun) pass(ctx context.Context, svc *corev1.Service) (steps []Step, problems []problem.Problem, err error) {
	if !d.opts.needsReconcile(svc) {
		return nil, nil, nil
	}
	svc, held, err := d.lock(ctx, svc)
	if err != nil {
		return nil, nil, err
	}
	defer held.release()
	d.plans, d.steps, d.failed = nil, nil, false
	switch {
	case d.opts.wants(svc) && !d.opts.changesProduct(svc):
		problems, err = d.provision(ctx, svc, held)
	case d.opts.handedOver(svc):
		problems = []problem.Problem{handOverProblem(svc, d.opts.engineOf(svc).Product())}
	case d.opts.hasFinalizer(svc):
		problems, err = d.tearDown(ctx, svc, held)
	}
	return d.steps, problems, err
}

// provision makes a pass over a Service that wants a load balancer.
func (d *dryRun) provision(ctx context.Context, svc *corev1.Service, held *locks) ([]problem.Problem, error) {
	known := d.stateOf(svc)
	adopted := known.has(svc)
	known = known.began(adopted)
	defer func() { d.states.commit(svc, known) }()
	svc, err := d.writer.change(ctx, svc, func(svc *corev1.Service) { addFinalizer(svc, known.engine) })
	if err != nil {
		return nil, err
	}
	var problems []problem.Problem
	known, problems, err = d.ensure(ctx, svc, adopted, known, held)
	known = known.conflicting(problems, err)
	return problems, err
}

// ensure makes the stages of [Reconciler.ensure] that decide on writes to the cloud.
func (d *dryRun) ensure(ctx context.Context, svc *corev1.Service, adopted bool, known state, held *locks) (after state, problems []problem.Problem, err error) {
	params, problems := d.read(known.engine, svc)
	known, unread, err := d.find(ctx, svc, params, adopted, known, held)
	if err != nil {
		return known, problems, err
	}
	inputs, goal, err := d.decide(ctx, svc, params, known)
	if err == nil && d.readGates(ctx, svc, inputs.cache.gates, len(inputs.cache.gates.pods), func(string) bool { return true }) == atOnce {
		known.cache = inputs.cache
		inputs, goal, err = d.decide(ctx, svc, params, known)
	}
	known.cache, known.lastValid = inputs.cache, inputs.lastValid
	problems = append(problems, goal.Problems...)
	if err != nil {
		return known, problems, err
	}
	unread = errors.Join(unread, inputs.unread)
	svc, intent, err := d.recordIntent(ctx, svc, known, goal)
	if err != nil {
		return known, problems, err
	}
	known.record = &intent
	deployed := d.deploy(ctx, svc, known.engine.Product(), goal.Plan, noteNothing)
	d.doubtOthers(svc, held, deployed)
	known = known.deployed(deployed)
	if len(goal.Plan.Steps()) > 0 {
		d.deployed(svc, known.balancer, inputs.Inputs, known.engine)
	}
	known, shown, _ := d.show(ctx, svc, params, known, held, inputs.Inputs, deployed)
	deployed.Balancer = known.balancer
	var record *Record
	known.record, record = recordApply(*known.record, goal.Applied, deployed, deployed.Err != nil)
	svc, err = d.updateService(ctx, svc, known, shown, record)
	if err = errors.Join(err, unread); err == nil && deployed.outcome() == nil && shown.Status != nil {
		var kept, left error
		svc, known, kept = d.leaveKept(ctx, svc, d.unnamed(svc, known), known, held)
		known, left = d.leaveLater(ctx, svc, known, held)
		err = errors.Join(kept, left)
	}
	return known, problems, err
}

// find reads the load balancer of a Service that may have one. It returns why parts could not be read: what is to be done about those, nobody knows.
func (d *dryRun) find(ctx context.Context, svc *corev1.Service, params annotation.Params, adopted bool, known state, held *locks) (after state, unread error, err error) {
	if err = checkBounds(svc); err != nil {
		return known, nil, err
	}
	if known, unread, err = d.refresh(ctx, svc, params, adopted, known, held); err != nil {
		return known, unread, err
	}
	if err = known.engine.Refuse(params); err != nil && known.balancer.ID() != "" {
		err = nil
	}
	return known, unread, err
}

// updateService shows on the Service what the pass came to.
func (d *dryRun) updateService(ctx context.Context, svc *corev1.Service, known state, shown Shown, record *Record) (*corev1.Service, error) {
	return d.writer.change(ctx, svc, func(svc *corev1.Service) {
		setLabels(svc, known.balancer.ID(), shown.SecurityGroup)
		if shown.Status != nil {
			svc.Status.LoadBalancer = withModes(*shown.Status, svc.Status.LoadBalancer)
		}
		if record != nil {
			known.store(*record)(svc)
		}
	})
}

// leaveLater removes what the Service has on load balancers that it has left.
func (d *dryRun) leaveLater(ctx context.Context, svc *corev1.Service, known state, held *locks) (state, error) {
	mover, ok := known.balancer.(Mover)
	if !ok || len(mover.Left(svc)) == 0 {
		return known, nil
	}
	if d.later = "once the Service shows the other load balancer"; d.opts.MoveGrace >= time.Second {
		d.later = fmt.Sprintf("once the Service has shown the other load balancer for %s", d.opts.MoveGrace.Round(time.Second))
	}
	defer func() { d.later = "" }()
	before := known.balancer.Recorded(Record{}).Leaving
	known, err := d.leave(ctx, svc, known, held)
	return known, errors.Join(err, d.storeLeft(ctx, svc, &known, before))
}

// tearDown makes a pass over a Service that no longer wants the load balancer that it has.
func (d *dryRun) tearDown(ctx context.Context, svc *corev1.Service, held *locks) ([]problem.Problem, error) {
	known, done, err := d.remove(ctx, svc, d.stateOf(svc), held)
	if err == nil {
		svc, known, err = d.leaveKept(ctx, svc, known.engine.Product().keptAfter(svc, done), known, held)
	}
	d.states.commit(svc, known)
	if err != nil {
		return nil, err
	}
	var problems []problem.Problem
	if done.Kept != "" {
		problems = append(problems, problem.Problem{Reason: problem.ReasonLoadBalancerKept, Message: done.Kept})
	}
	released, err := d.writer.change(ctx, svc, func(svc *corev1.Service) { release(svc, known.engine.Product(), d.opts.foreign(svc)) })
	if err != nil {
		return problems, err
	}
	known.engine.Forget(svc.UID)
	d.states.drop(mark.ServiceName(svc))
	d.leaveCrowd(svc.UID)
	if svc.DeletionTimestamp != nil {
		err = d.services.Delete(released)
	}
	return problems, err
}

// note notes the steps of a plan.
func (d *dryRun) note(plan Plan) {
	d.plans = append(d.plans, plan)
	for _, step := range plan.Steps() {
		if d.later != "" {
			step.Later, step.Text = d.later, fmt.Sprintf("%s (%s)", step.Text, d.later)
		}
		d.steps = append(d.steps, step)
	}
}

// noteNothing is the [Create] of a dry run, and of plans that create no load balancer.
func noteNothing(_ context.Context, _ any, send func(token string) (id string, err error)) error {
	_, err := send("")
	return err
}

// deploy carries out a plan. In a dry run, it says nothing of that.
func (r *Reconciler) deploy(ctx context.Context, svc *corev1.Service, product Product, plan Plan, create Create) Deployment {
	if r.dry != nil {
		r.dry.note(plan)
		deployed := plan.Deploy(klog.NewContext(ctx, klog.Logger{}), svc, create)
		r.dry.failed = r.dry.failed || deployed.Err != nil
		return deployed
	}
	observePlan(product, plan)
	return plan.Deploy(ctx, svc, create)
}
