package service

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/queue"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// Reconciler makes the cloud match the Services. It is the only writer: one pass at a time per Service, whoever asks for it.
type Reconciler struct {
	opts       Options
	writer     serviceWriter
	events     *events.Recorder
	states     states
	services   queue.KeyLock // by namespace/name
	balancers  queue.KeyLock // by the id of a load balancer that several Services may share; taken after the Service's
	interrupts interrupts
	pods       podReader
	network    sources.Network
	nodes      sources.NodeSnapshot
	use        instanceUse
	uses       uses
	// traffic says on Nodes whether load balancers send to them; nil where nobody does.
	traffic *trafficWriter
	// wake has a pass made over a Service; nil where nobody makes any.
	wake func(types.NamespacedName)
}

// NewReconciler returns a reconciler. It asks for the informers that it reads, which may be started later.
func NewReconciler(opts Options) *Reconciler {
	opts = opts.withDefaults()
	opts.Services.Informer()
	opts.Nodes.Informer()
	opts.endpointInformer()
	opts.indexSlices()
	registerMetrics()
	r := &Reconciler{
		opts: opts, writer: serviceWriter{client: opts.Client}, events: events.New(opts.Recorder, 0),
		network: sources.Network{API: opts.Network, VPCID: opts.Config.VPCID},
	}
	if opts.Pods != nil {
		opts.Pods.Wake = func(service types.NamespacedName) {
			if r.wake != nil {
				r.wake(service)
			}
		}
	}
	return r
}

// Reconcile makes one pass over a Service: it creates or repairs its load balancer, or tears it down, and shows the result on the
// Service. It returns after what time the next pass is due without any event, 0 for none.
//
// An error that only means "not now" is not returned; the time is then short.
func (r *Reconciler) Reconcile(ctx context.Context, svc *corev1.Service) (next time.Duration, err error) {
	defer func() {
		if lost := r.failAfterPanic(ctx, svc, recover()); lost != nil {
			next, err = 0, lost
		}
	}()
	if !r.opts.needsReconcile(svc) {
		return 0, nil
	}
	svc, held, err := r.lockService(ctx, svc)
	if err != nil {
		return 0, err
	}
	defer held.releaseAll()
	defer r.notePass(svc)
	switch {
	case held.gone:
		return 0, nil // its event is on the way
	case r.opts.wantsBalancer(svc) && !r.opts.changesProduct(svc):
		return r.provisionService(ctx, svc, held)
	case r.opts.handedOver(svc):
		r.emitProblems(svc, []problem.Problem{handOverProblem(svc, r.opts.engineOf(svc).Product())}, nil)
		return 0, nil
	case r.opts.hasFinalizer(svc):
		return r.tearDown(ctx, svc, held)
	default:
		return 0, nil
	}
}

// isFailing reports whether the last attempt for a Service failed.
func (r *Reconciler) isFailing(key types.NamespacedName) bool { return r.states.isFailing(key) }

// Forget drops what is known of a Service that is gone.
func (r *Reconciler) Forget(key types.NamespacedName) {
	uid := r.states.dropState(key)
	behind.noteSynced(key)
	r.uses.dropService(key)
	r.traffic.forget(key)
	if r.opts.Pods != nil {
		r.opts.Pods.ForgetService(key)
	}
	for _, engine := range r.opts.Engines {
		engine.Forget(uid)
	}
	r.forgetUse(uid)
}

// Invalidate has the next pass over a Service read its load balancer before it plans.
func (r *Reconciler) Invalidate(ctx context.Context, svc *corev1.Service, reason string) error {
	svc, held, err := r.lockService(ctx, svc)
	if err != nil {
		return err
	}
	defer held.releaseAll()
	known := r.stateOf(svc)
	known.balancer = known.balancer.Invalidate(reason)
	r.states.commitState(svc, known)
	return nil
}

// doubtOthers has what a plan wrote to on a shared load balancer read again for the other Services that rely on it: what is one's own may
// be what another Service wants, too, and counted as there.
func (r *Reconciler) doubtOthers(svc *corev1.Service, held *locks, deployed driver.Deployment) {
	if held.balancer == "" || len(deployed.Shared) == 0 {
		return
	}
	reason := "another Service has changed it: " + mark.ServiceName(svc).String()
	for _, key := range r.states.invalidateShared(deployed.Shared, svc.UID, reason) {
		if r.wake != nil {
			r.wake(key)
		}
	}
}

// Preload reads the load balancers of all Services that have one together, which after a start takes a fraction of the calls that
// reading Service by Service takes. What it misses, a Service reads itself.
func (r *Reconciler) Preload(ctx context.Context) error {
	services, err := r.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the Services: %w", err)
	}
	for _, engine := range r.opts.Engines {
		var owned []*corev1.Service
		for _, svc := range services {
			if r.opts.wantsBalancer(svc) && r.opts.engineOf(svc) == engine && driver.HasFinalizer(svc, engine.Product().Finalizer) {
				owned = append(owned, svc)
			}
		}
		if len(owned) == 0 {
			continue
		}
		if err := preloadBalancers(ctx, engine, owned); err != nil {
			return err
		}
	}
	return nil
}

// preloadBalancers has an engine read the load balancers of its Services.
func preloadBalancers(ctx context.Context, engine driver.Engine, services []*corev1.Service) (err error) {
	defer func() {
		if lost := panicAsError(ctx, recover()); lost != nil {
			err = lost
		}
	}()
	return engine.Preload(ctx, services)
}

// stateOf returns what is known of a Service. What is known of the load balancer of one product says nothing about that of another.
func (r *Reconciler) stateOf(svc *corev1.Service) state {
	known, engine := r.states.stateOf(svc), r.opts.engineOf(svc)
	if known.engine != engine {
		return state{uid: svc.UID, engine: engine, balancer: engine.Start()}
	}
	return known
}

// panicError is a panic of a pass. It is an error of that Service alone: if it ended the process, it would end the work on all
// other Services, at each start anew.
type panicError struct{ value any }

// Error implements error.
func (e *panicError) Error() string {
	return fmt.Sprintf("a bug in this program ended the pass: %v; the log of the program has the stack", e.value)
}

// panicAsError returns a panic as an error; value is what recover returned, nil for no panic.
func panicAsError(ctx context.Context, value any) error {
	if value == nil {
		return nil
	}
	passPanics.Inc()
	err := &panicError{value: value}
	klog.FromContext(ctx).Error(err, "A pass ended in a panic", "stack", string(debug.Stack()))
	return err
}

// failAfterPanic returns a panic outside of the stages as an error of the Service, and drops its state, which may be half of a change.
func (r *Reconciler) failAfterPanic(ctx context.Context, svc *corev1.Service, value any) error {
	err := panicAsError(ctx, value)
	if err != nil {
		r.states.dropState(mark.ServiceName(svc))
		r.emitFailure(svc, problem.ReasonSyncFailed, failure.Signature(err), err)
	}
	return err
}
