package slb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Reconciler makes the cloud look as the Services want. It is the only writer: one pass at a time per Service, whoever
// asks for it.
type Reconciler struct {
	opts     Options
	services keyLock // by namespace/name
	memories memories
	kube     kubeWriter
}

// NewReconciler returns a reconciler. It asks for the informers that it reads, which may be started later.
func NewReconciler(opts Options) *Reconciler {
	opts = opts.withDefaults()
	opts.Services.Informer()
	opts.Nodes.Informer()
	opts.EndpointSlices.Informer()
	return &Reconciler{opts: opts, kube: kubeWriter{client: opts.Client}}
}

// outcome is what one pass came to.
type outcome struct {
	// loadBalancerID and status are what the Service is to show; a nil status leaves it as it is.
	loadBalancerID string
	status         *corev1.LoadBalancerStatus
	problems       []Problem
	// writes counts the calls that changed something.
	writes int
}

// ensure makes the CLB of a Service as it is wanted. The caller holds the Service's lock.
func (r *Reconciler) ensure(ctx context.Context, svc *corev1.Service, known *memory) (outcome, error) {
	params, problems := ParseParams(svc.Annotations)
	out := outcome{problems: problems}
	if err := r.refuse(params); err != nil {
		return out, err
	}
	if err := r.look(ctx, svc, known); err != nil {
		return out, err
	}
	plan, err := r.plan(ctx, svc, known, params, &out)
	if err != nil {
		return out, err
	}
	err = r.apply(ctx, svc, known, plan, &out)
	if actual := known.actual; actual != nil && actual.LoadBalancer.ID != "" {
		out.loadBalancerID = actual.LoadBalancer.ID
		if actual.serves() {
			out.status = statusOf(actual, params)
		}
	}
	return out, err
}

// refuse returns why nothing may be done for a Service.
func (r *Reconciler) refuse(params Params) error {
	if r.opts.Config.DisablePublicSLB && params.addressType() == alicloud.AddressInternet {
		return &ConfigError{Field: "disablePublicSLB", Reason: "public CLBs are switched off in the cloud config; ask for one with the annotation " +
			string(AddressType) + ": intranet"}
	}
	return nil
}

// look makes sure that what is remembered may be trusted, and reads the cloud where it may not.
func (r *Reconciler) look(ctx context.Context, svc *corev1.Service, known *memory) error {
	if known.fresh && time.Now().Before(known.due) {
		return nil
	}
	lb, err := r.locate(ctx, svc, known)
	if err != nil {
		return err
	}
	known.actual = nil
	if lb != nil {
		service := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
		if known.actual, err = observe(ctx, r.opts.API, *lb, service); err != nil {
			return err
		}
	}
	known.fresh, known.busy = true, 0
	known.due = time.Now().Add(r.opts.ResyncPeriod + rand.N(r.opts.ResyncPeriod/5+1))
	return nil
}

// locate returns the CLB as it is, or nil when there is none.
func (r *Reconciler) locate(ctx context.Context, svc *corev1.Service, known *memory) (*alicloud.LoadBalancer, error) {
	before := svc.Labels[LabelLoadBalancerID]
	if known.actual != nil && known.actual.LoadBalancer.ID != "" {
		before = known.actual.LoadBalancer.ID
		lb, err := r.opts.API.DescribeLoadBalancer(ctx, before)
		if err == nil {
			return &lb, nil
		}
		if !alicloud.IsNotFound(err) {
			return nil, fmt.Errorf("read CLB %s: %w", before, err)
		}
	}
	lb, err := find(ctx, r.opts.API, svc, known.marked)
	if err != nil || lb != nil {
		return lb, err
	}
	if before != "" {
		known.lost = before
		known.recreating = before
	}
	return nil, nil
}

// plan compares what is wanted with what is there.
func (r *Reconciler) plan(ctx context.Context, svc *corev1.Service, known *memory, params Params, out *outcome) (Plan, error) {
	if params.invalid && known.actual == nil {
		return Plan{}, nil
	}
	if params.invalid && known.valid != nil {
		params = *known.valid // an existing CLB keeps serving with the last valid settings
	} else if !params.invalid {
		known.valid = &params
	}
	in, err := r.input(ctx, svc, known, params)
	if err != nil {
		return Plan{}, err
	}
	desired, problems := Build(in)
	service := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
	plan := Diff(desired, known.actual, service, in.ClusterID)
	out.problems = append(append(out.problems, problems...), plan.Problems...)
	if hasInvalid(out.problems) {
		plan = plan.membersOnly()
	}
	return plan, nil
}

func hasInvalid(problems []Problem) bool {
	for _, problem := range problems {
		if problem.Reason == ReasonInvalidAnnotation {
			return true
		}
	}
	return false
}

// input collects what the wanted state depends on.
func (r *Reconciler) input(_ context.Context, svc *corev1.Service, known *memory, params Params) (Input, error) {
	in := Input{Service: svc, Params: params, Config: r.opts.Config, ClusterID: r.opts.Config.ClusterID}
	if known.actual != nil {
		service := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
		if id := adoptedClusterID(known.actual, service); id != "" {
			in.ClusterID = id
		}
	}
	nodes, err := r.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return in, fmt.Errorf("list the nodes: %w", err)
	}
	in.Nodes = NodesOf(nodes, r.opts.InstanceID)
	in.Slices, err = r.slices(svc)
	return in, err
}

// slices returns all EndpointSlices of the Service.
func (r *Reconciler) slices(svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})
	found, err := r.opts.EndpointSlices.Lister().EndpointSlices(svc.Namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("list the endpoint slices: %w", err)
	}
	return found, nil
}

// apply carries the plan out and updates what is remembered.
func (r *Reconciler) apply(ctx context.Context, svc *corev1.Service, known *memory, plan Plan, out *outcome) error {
	if plan.Empty() {
		known.busy = 0
		return nil
	}
	if known.actual == nil {
		known.actual = &Model{}
	}
	applier := newApplier(r.opts.API, known.actual, func(lb alicloud.LoadBalancer) string { return clientToken(svc.UID, known.lost, lb) })
	err := applier.run(ctx, plan)
	out.writes += applier.writes
	r.settle(known, applier, err)
	return err
}

// settle decides how far what is remembered may be trusted after a plan was carried out.
func (r *Reconciler) settle(known *memory, applier *applier, err error) {
	if known.actual.LoadBalancer.ID == "" {
		known.actual = nil // nothing was made; whether that is certain, doubt says
	}
	if applier.lost != "" {
		known.forget(applier.lost)
		known.recreating = applier.lost
		return
	}
	if applier.doubt {
		known.doubt()
	}
	if err == nil {
		known.busy = 0
		return
	}
	if known.busy++; known.busy >= maxBusyInRow {
		known.doubt()
		known.busy = 0
	}
}

// remove tears down what the Service has. It is a success when there is nothing.
func (r *Reconciler) remove(ctx context.Context, svc *corev1.Service, known *memory) (outcome, error) {
	var out outcome
	if !known.fresh || known.actual == nil {
		lb, err := find(ctx, r.opts.API, svc, true)
		if err != nil {
			return out, err
		}
		if lb == nil {
			known.forget(known.lost)
			out.loadBalancerID = known.removing
			return out, nil
		}
		known.actual = &Model{LoadBalancer: *lb}
	}
	id := known.actual.LoadBalancer.ID
	out.loadBalancerID, known.removing = id, id
	err := r.apply(ctx, svc, known, removalPlan(known.actual), &out)
	if err != nil && known.actual != nil { // nil: a call said that the CLB is gone
		return out, err
	}
	known.forget(id)
	return out, nil
}

// removalPlan deletes a CLB of ours; its listeners and groups go with it.
func removalPlan(actual *Model) Plan {
	var plan Plan
	if actual.LoadBalancer.DeleteProtection != alicloud.ProtectionOff {
		plan.Steps = append(plan.Steps, Step{
			Op: OpSetProtection, Target: targetLoadBalancer, Before: actual.LoadBalancer.DeleteProtection, After: alicloud.ProtectionOff,
			loadBalancer: alicloud.LoadBalancer{DeleteProtection: alicloud.ProtectionOff},
		})
	}
	plan.Steps = append(plan.Steps, Step{Op: OpDeleteLoadBalancer, Target: targetLoadBalancer, Before: actual.LoadBalancer.ID})
	return plan
}
