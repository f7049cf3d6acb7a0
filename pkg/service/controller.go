package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/controller-manager/controller"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/queue"
)

// ControllerName is the name in logs, metrics and health checks; it is that of the stock controller that this one
// replaces.
const ControllerName = "service-lb-controller"

// Backoff of a Service whose pass failed.
const (
	minBackoff = time.Second
	maxBackoff = 2 * time.Minute
)

// Controller watches Services, EndpointSlices and Nodes and has the reconciler make a pass over the Services that they
// concern. Events only name the Service; the pass reads everything anew.
type Controller struct {
	opts       Options
	reconciler *Reconciler
	queue      workqueue.TypedRateLimitingInterface[types.NamespacedName]
	order      *queue.UrgentFirst
	synced     []cache.InformerSynced
	health     *health
}

var (
	_ controller.Interface       = (*Controller)(nil)
	_ controller.HealthCheckable = (*Controller)(nil)
)

// NewController returns a controller. It registers with the informers and does not wait for them.
func NewController(opts Options, reconciler *Reconciler) (*Controller, error) {
	opts = opts.withDefaults()
	c := &Controller{
		opts: opts, reconciler: reconciler, health: newHealth(),
	}
	c.queue, c.order = queue.New(ControllerName, minBackoff, maxBackoff)
	for _, registration := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{opts.Services.Informer(), c.serviceEvents()},
		{opts.endpointInformer(), c.endpointEvents()},
		{opts.Nodes.Informer(), c.nodeEvents()}, // the last, see below
	} {
		handle, err := registration.informer.AddEventHandler(registration.handler)
		if err != nil {
			return nil, fmt.Errorf("register with an informer: %w", err)
		}
		c.synced = append(c.synced, handle.HasSynced)
	}
	reconciler.wake = func(key types.NamespacedName) { c.enqueue(key, queue.OwnEvent) }
	for _, engine := range opts.Engines {
		if waker, ok := engine.(driver.Waker); ok {
			waker.Wakes(reconciler.wake)
		}
	}
	reconciler.traffic = newTrafficWriter(opts, reconciler.wake)
	reconciler.nodes.FollowChanges(c.synced[len(c.synced)-1])
	reconciler.use.followed.Store(true)
	return c, nil
}

// Name implements controller.Interface.
func (c *Controller) Name() string { return ControllerName }

// Run works until ctx is done, and returns when the last pass has ended.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithName(ControllerName)
	ctx = klog.NewContext(ctx, logger)
	defer c.queue.ShutDown()
	defer c.reconciler.traffic.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return // ctx is done
	}
	var running sync.WaitGroup
	defer running.Wait()
	quotasRead, latest := make(chan struct{}), time.After(quotaStart)
	running.Go(func() { (&quotaWatch{Reconciler: c.reconciler}).watchQuotas(ctx, quotasRead, c.Resync) })
	if err := c.reconciler.Preload(ctx); err != nil {
		logger.Error(err, "Cannot read all load balancers together; reading that of each Service instead")
	}
	select {
	case <-quotasRead:
	case <-latest:
	case <-ctx.Done():
	}
	logger.Info("Started", "workers", c.opts.Workers)
	running.Go(func() { c.work(ctx) })
	running.Go(func() { c.reconciler.traffic.run(ctx) })
	<-ctx.Done()
	c.queue.ShutDown()
}

// work handles as many Services at a time as there are workers. One that waits for the rate limit, which may take minutes,
// holds up no other: it is not counted any more.
func (c *Controller) work(ctx context.Context) {
	var passes sync.WaitGroup
	defer passes.Wait()
	slots := make(chan struct{}, c.opts.Workers)
	for {
		slots <- struct{}{}
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		passes.Go(func() {
			release := sync.OnceFunc(func() { <-slots })
			defer release()
			c.handleKey(alicloud.WithWaiting(ctx, alicloud.Waiting{
				Tenant:  key.Namespace,
				Parked:  func() { release(); c.health.pausePass(key) },
				Resumed: func() { c.health.resumePass(key) },
			}), key)
		})
	}
}

// enqueue puts a Service into the queue. A pass over it that waits for the rate limit makes room for one that knows more.
func (c *Controller) enqueue(key types.NamespacedName, wanted queue.Urgency) {
	c.reconciler.Interrupt(key)
	c.order.Ask(key, wanted)
	c.queue.Add(key)
}

// handleKey makes one pass and puts the Service back for the next one.
func (c *Controller) handleKey(ctx context.Context, key types.NamespacedName) {
	defer c.queue.Done(key)
	defer c.health.trackPass(key)()
	logger := klog.FromContext(ctx).WithValues("service", key)
	next, err := c.runPass(klog.NewContext(ctx, logger), key)
	switch {
	case err != nil && ctx.Err() != nil:
		return // shutting down is no failure
	case err != nil:
		logger.Error(err, "Sync failed, will try again", "failures", c.queue.NumRequeues(key)+1)
		c.queue.AddRateLimited(key)
		return
	case next == failure.AtOnce: // whoever waits for what the pass has learned has waited long enough
		c.order.Ask(key, queue.OwnEvent)
		c.queue.Add(key)
	case next > 0:
		c.queue.AddAfter(key, next)
	}
	if !c.reconciler.isFailing(key) { // a pass that only waits is no success: between two refusals, one may read what is there
		c.queue.Forget(key)
	}
}

func (c *Controller) runPass(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	svc, err := c.opts.Services.Lister().Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.reconciler.Forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the Service from the cache: %w", err)
	}
	return c.reconciler.Reconcile(ctx, svc)
}

func (c *Controller) serviceEvents() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if svc, ok := object.(*corev1.Service); ok {
			c.reconciler.use.markChanged()
			c.enqueue(mark.ServiceName(svc), queue.OwnEvent)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if svc, ok := object.(*corev1.Service); ok && c.opts.needsReconcile(svc) {
				enqueue(svc)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(*corev1.Service)
			svc, also := after.(*corev1.Service)
			if ok && also && (c.opts.needsReconcile(old) || c.opts.needsReconcile(svc)) && !changesOnlyRecord(old, svc) {
				enqueue(svc)
			}
		},
		DeleteFunc: func(object any) { enqueue(deletedObject(object)) },
	}
}

func (c *Controller) endpointEvents() cache.ResourceEventHandler {
	enqueue := func(object any) {
		key := serviceOf(deletedObject(object))
		if key.Name == "" {
			return
		}
		svc, err := c.opts.Services.Lister().Services(key.Namespace).Get(key.Name)
		if err == nil && c.opts.wantsBalancer(svc) {
			c.enqueue(key, queue.OwnEvent)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, after any) { enqueue(after) },
		DeleteFunc: enqueue,
	}
}

// serviceOf returns the Service that an EndpointSlice or an Endpoints object belongs to.
func serviceOf(object any) types.NamespacedName {
	switch endpoints := object.(type) {
	case *discoveryv1.EndpointSlice:
		return types.NamespacedName{Namespace: endpoints.Namespace, Name: endpoints.Labels[discoveryv1.LabelServiceName]}
	case *corev1.Endpoints: //nolint:staticcheck // what old roles may read
		return types.NamespacedName{Namespace: endpoints.Namespace, Name: endpoints.Name}
	}
	return types.NamespacedName{}
}

// nodeEvents compares what the reconciler makes of a node: a heartbeat, or a label that does not matter, concerns nobody. The nodes
// of the initial list concern nobody either: every Service has an event of its own then, and its pass waits for all nodes.
func (c *Controller) nodeEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			c.reconciler.nodes.MarkStale()
			if !initial {
				c.enqueueLater(c.opts.wantsBalancer)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(*corev1.Node)
			node, also := after.(*corev1.Node)
			if ok && also {
				c.nodeChanged(old, node)
			}
		},
		DeleteFunc: func(any) {
			c.reconciler.nodes.MarkStale()
			c.enqueueNow(queue.NodeLeft)
		},
	}
}

func (c *Controller) nodeChanged(old, node *corev1.Node) {
	now := time.Now()
	was, is := backend.NodeOf(old, c.opts.InstanceID, now), backend.NodeOf(node, c.opts.InstanceID, now)
	if backend.SameNode(was, is) {
		return
	}
	c.reconciler.nodes.MarkStale()
	was.Labels = is.Labels
	switch {
	case backend.SameNode(was, is):
		c.enqueueLater(func(svc *corev1.Service) bool { return c.opts.wantsBalancer(svc) && selectsNodes(svc) })
	case was.Ready && !is.Ready, !was.Leaving && is.Leaving, was.Candidate && !is.Candidate:
		c.enqueueNow(queue.NodeLeft)
	default:
		c.enqueueLater(c.opts.wantsBalancer)
	}
}

// selectsNodes reports whether labels of nodes decide on the backends of the Service.
func selectsNodes(svc *corev1.Service) bool {
	_, ok := annotation.Lookup(svc.Annotations, annotation.BackendLabel)
	return ok
}

// Resync makes a pass over every Service that needs one, when something changed that concerns all.
func (c *Controller) Resync() {
	for _, svc := range c.listServices(c.opts.needsReconcile) {
		c.enqueue(mark.ServiceName(svc), queue.Usual)
	}
}

// enqueueNow puts every Service that wants a load balancer into the queue.
func (c *Controller) enqueueNow(wanted queue.Urgency) {
	for _, svc := range c.listServices(c.opts.wantsBalancer) {
		c.enqueue(mark.ServiceName(svc), wanted)
	}
}

// enqueueLater puts the Services into the queue once further nodes may have changed, too.
func (c *Controller) enqueueLater(concerns func(*corev1.Service) bool) {
	for _, svc := range c.listServices(concerns) {
		key := mark.ServiceName(svc)
		c.reconciler.Interrupt(key)
		c.queue.AddAfter(key, c.opts.NodeDelay)
	}
}

func (c *Controller) listServices(concerned func(*corev1.Service) bool) []*corev1.Service {
	services, err := c.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return nil // the lister reads memory; it has no way to fail
	}
	return slices.DeleteFunc(services, func(svc *corev1.Service) bool { return !concerned(svc) })
}

// deletedObject returns the last known object of a delete event that was missed.
func deletedObject(object any) any {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}
