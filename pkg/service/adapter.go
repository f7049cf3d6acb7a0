package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// LoadBalancer lets the service controller of k8s.io/cloud-provider drive the reconciler, for those who link this
// provider into a stock cloud controller manager. The nodes that it hands over are not used: the reconciler finds the
// backends itself.
type LoadBalancer struct {
	reconciler *Reconciler
}

var _ cloudprovider.LoadBalancer = (*LoadBalancer)(nil)

// NewLoadBalancer returns the adapter. It forgets Services that are gone, which the stock controller does not say.
func NewLoadBalancer(reconciler *Reconciler) *LoadBalancer {
	_, err := reconciler.opts.Services.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if svc, ok := deletedObject(object).(*corev1.Service); ok {
			reconciler.Forget(mark.ServiceName(svc))
		}
	}})
	if err != nil { // the informer was stopped: nothing goes any more
		klog.Background().Error(err, "Cannot watch for deleted Services")
	}
	return &LoadBalancer{reconciler: reconciler}
}

// GetLoadBalancerName implements cloudprovider.LoadBalancer.
func (l *LoadBalancer) GetLoadBalancerName(_ context.Context, _ string, svc *corev1.Service) string {
	return mark.DefaultName(svc.UID)
}

// GetLoadBalancer implements cloudprovider.LoadBalancer. As long as it answers that there is something, the stock
// controller comes back to have it deleted.
func (l *LoadBalancer) GetLoadBalancer(ctx context.Context, _ string, svc *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	if l.reconciler.opts.isForeign(svc) {
		return nil, false, nil
	}
	return l.reconciler.Exists(ctx, svc)
}

// EnsureLoadBalancer implements cloudprovider.LoadBalancer.
func (l *LoadBalancer) EnsureLoadBalancer(
	ctx context.Context, _ string, svc *corev1.Service, _ []*corev1.Node,
) (*corev1.LoadBalancerStatus, error) {
	if !l.reconciler.opts.wantsBalancer(svc) {
		return nil, cloudprovider.ImplementedElsewhere
	}
	return l.reconciler.Ensure(ctx, svc)
}

// UpdateLoadBalancer implements cloudprovider.LoadBalancer.
func (l *LoadBalancer) UpdateLoadBalancer(ctx context.Context, _ string, svc *corev1.Service, _ []*corev1.Node) error {
	if !l.reconciler.opts.wantsBalancer(svc) {
		return cloudprovider.ImplementedElsewhere
	}
	_, err := l.reconciler.Ensure(ctx, svc)
	return err
}

// EnsureLoadBalancerDeleted implements cloudprovider.LoadBalancer.
func (l *LoadBalancer) EnsureLoadBalancerDeleted(ctx context.Context, _ string, svc *corev1.Service) error {
	if l.reconciler.opts.isForeign(svc) {
		return nil
	}
	return l.reconciler.Delete(ctx, svc)
}

// Ensure makes the load balancer of a Service as it is wanted and returns what its status shows.
func (r *Reconciler) Ensure(ctx context.Context, svc *corev1.Service) (status *corev1.LoadBalancerStatus, err error) {
	defer func() {
		if lost := r.failAfterPanic(ctx, svc, recover()); lost != nil {
			status, err = nil, lost
		}
	}()
	if err = r.untilSynced(ctx); err != nil {
		return nil, err
	}
	svc, held, err := r.lockService(ctx, svc)
	if err != nil {
		return nil, err
	}
	defer held.releaseAll()
	if held.gone || !r.opts.wantsBalancer(svc) {
		return nil, cloudprovider.ImplementedElsewhere // changed while others held the locks; its event is on the way
	}
	known := r.stateOf(svc).afterEdit(svc).afterPause(r.opts.pausedBy(svc))
	defer func() { r.commitState(svc, known) }()
	known, done, err := r.ensureAll(ctx, svc, known, held)
	if err != nil && ctx.Err() != nil {
		return nil, err // shutting down is no failure
	}
	err = errors.Join(err, r.storeRecord(ctx, known, done))
	wait, retryLater := failure.WaitTime(err)
	retryLater = retryLater && err != nil
	known.failure, known.replaced = r.emitEvents(svc, known, done, err, retryLater)
	if retryLater {
		return nil, api.NewRetryError(err.Error(), wait)
	}
	if err != nil {
		return nil, err
	}
	return statusShown(done)
}

// statusShown returns what the status shows, or why the stock controller has to try again.
func statusShown(done ensured) (*corev1.LoadBalancerStatus, error) {
	switch {
	case done.status != nil:
		return done.status, nil
	case problem.HasReason(done.problems, problem.ReasonPaused):
		return nil, api.NewRetryError("the Service is paused", conflictWait)
	default:
		return nil, errors.New("no listener of the load balancer is running yet")
	}
}

// storeRecord writes what was applied to the Service: the stock controller writes nothing but its status.
func (r *Reconciler) storeRecord(ctx context.Context, known state, done ensured) error {
	if done.record == nil {
		return nil
	}
	if _, err := r.writer.changeService(ctx, done.service, known.storeRecord(*done.record)); err != nil {
		return fmt.Errorf("record what was applied to %s: %w", done.record.LoadBalancerID, err)
	}
	return nil
}

// ensureAll makes the stages of [Reconciler.ensureBalancer], once more whenever pods were found to wait for their readiness gates: nobody
// else has them made again.
func (r *Reconciler) ensureAll(ctx context.Context, svc *corev1.Service, known state, held *locks) (state, ensured, error) {
	adopted := known.carriesFinalizer(svc) || slices.Contains(svc.Finalizers, driver.StockFinalizer)
	writes := 0
	for {
		after, done, err := r.ensureBalancer(ctx, svc, adopted, known, held)
		done.writes += writes
		if err != nil || r.readGates(ctx, svc, after.cache.gates, maxGateReads, done.registered) != failure.AtOnce {
			return after, done, err
		}
		svc, known, writes = done.service, after, done.writes
	}
}

// Delete tears down what the Service has in the cloud, then removes our marks from the Service.
func (r *Reconciler) Delete(ctx context.Context, svc *corev1.Service) (err error) {
	defer func() {
		if lost := r.failAfterPanic(ctx, svc, recover()); lost != nil {
			err = lost
		}
	}()
	svc, held, err := r.lockService(ctx, svc)
	if err != nil {
		return err
	}
	defer held.releaseAll()
	known := r.stateOf(svc)
	defer func() { r.commitState(svc, known) }()
	if by := r.opts.pausedBy(svc); by != "" {
		return api.NewRetryError(by+" keeps this program from writing to the cloud", conflictWait)
	}
	if known, _, err = r.removeFromCloud(ctx, svc, known, held); err != nil {
		return err
	}
	known.engine.Released(svc.UID)
	change := driver.Record{}.StoreChange()
	if product := known.engine.Product(); known.carriesFinalizer(svc) {
		// The official CCM served this Service before; the stock controller does not know its finalizer.
		change = func(svc *corev1.Service) { removeMarks(svc, product) }
	}
	_, err = r.writer.changeService(ctx, svc, change)
	return err
}

// Exists reports whether the Service has anything in the cloud or carries our marks.
func (r *Reconciler) Exists(ctx context.Context, svc *corev1.Service) (status *corev1.LoadBalancerStatus, exists bool, err error) {
	defer func() {
		if lost := r.failAfterPanic(ctx, svc, recover()); lost != nil {
			status, exists, err = nil, false, lost
		}
	}()
	unlock, _, err := r.services.Lock(ctx, mark.ServiceName(svc).String())
	if err != nil {
		return nil, false, fmt.Errorf("wait for the Service: %w", err)
	}
	defer unlock()
	known := r.stateOf(svc)
	balancer, err := known.balancer.RefreshForRemoval(ctx, svc, known.record)
	if err != nil {
		known.balancer = balancer // since when it is missing
		r.states.commitState(svc, known)
		return nil, false, err
	}
	if balancer.ID() == "" {
		return nil, known.carriesFinalizer(svc), nil
	}
	removal, err := balancer.PlanRemoval(svc, nil)
	if err != nil {
		return nil, false, err
	}
	if removal.Reused && len(removal.Plan.Steps()) == 0 {
		return nil, known.carriesFinalizer(svc), nil // nothing of ours is on it
	}
	return removal.Status, true, nil
}

// untilSynced waits for the caches that a plan relies on. A stock manager waits for those of its own controllers alone, and backends that
// are not in the cache yet would leave the load balancer.
func (r *Reconciler) untilSynced(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, waits.CachesOfAdapter)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), r.opts.endpointInformer().HasSynced, r.opts.Nodes.Informer().HasSynced) {
		return api.NewRetryError("the endpoints and nodes of the cluster are not in the cache yet", minBackoff)
	}
	return nil
}

// commitState commits the state of a Service, unless the Service is gone: then no event will have it forgotten any more.
func (r *Reconciler) commitState(svc *corev1.Service, known state) {
	r.states.commitState(svc, known)
	if now, err := r.currentService(svc); err == nil && now == nil {
		r.Forget(mark.ServiceName(svc))
	}
}
