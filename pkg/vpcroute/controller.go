package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/controller-manager/pkg/healthz"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
)

// controllerName is the stock route controller's, so that --controllers and RBAC names mean the same.
const controllerName = "node-route-controller"

const (
	// stuckAfter is how long a pass may take before the controller counts as unhealthy. A pass waits for the rate limit and
	// for a busy cloud, a few minutes at most.
	stuckAfter = 15 * time.Minute
	// keyCheck is how often the controller asks whether another access key is in use.
	keyCheck = 5 * time.Second
	// firstBackoff and maxBackoff bound the wait before something that failed is tried again.
	firstBackoff = time.Second
	maxBackoff   = 2 * time.Minute
)

// task is what the controller's queue holds. One worker at most handles a task at a time.
type task string

const (
	// taskRoutes compares all nodes with all route tables.
	taskRoutes task = "routes"
	// taskChecks switches source/destination checks off.
	taskChecks task = "source/destination checks"
)

func newQueue[K comparable]() workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstBackoff, maxBackoff))
}

// Controller keeps the route tables and the nodes' conditions as the nodes want them. Node events only signal it; every
// pass compares all nodes with all tables anew.
type Controller struct {
	opts       Options
	writer     *Writer
	events     *events.Recorder
	conditions *conditions
	checks     *sourceDest
	queue      workqueue.TypedRateLimitingInterface[task]
	// signals counts the node events since the last pass began.
	signals atomic.Int64
	// busySince is when the running pass began, nil between passes.
	busySince atomic.Pointer[time.Time]
	// newKey says that another access key has come into use since the last pass.
	newKey atomic.Bool

	pass *pass
}

// NewController returns the controller that works through the writer. It asks for the node informer and does not wait
// for it.
func NewController(opts Options, writer *Writer) (*Controller, error) {
	if opts.Client == nil || writer == nil {
		return nil, errors.New("the route controller needs a Kubernetes client and a writer")
	}
	opts = opts.withDefaults()
	recorder := events.New(opts.Recorder, eventInterval)
	c := &Controller{
		opts: opts, writer: writer, events: recorder, queue: newQueue[task](),
		conditions: newConditions(opts.Client, opts.Nodes.Lister()), checks: newSourceDest(opts, recorder),
	}
	c.pass = newPass(c)
	_, err := opts.Nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			c.begin(object)
			c.signal()
		},
		DeleteFunc: func(any) { c.signal() },
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				c.signal()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	return c, nil
}

// begin makes the network of a node that joins unavailable, without waiting for a pass.
func (c *Controller) begin(object any) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	_, err := c.opts.InstanceID(node)
	if joins(node, err == nil && nodes.ExclusionLabel(node) == "", time.Now()) && lacksCondition(node) {
		c.conditions.require([]*corev1.Node{node})
	}
}

// changed reports whether a node changed in what routes and conditions depend on. Kubelets update their nodes every few
// seconds, and none of that matters here.
func changed(before, after any) bool {
	a, okA := before.(*corev1.Node)
	b, okB := after.(*corev1.Node)
	if !okA || !okB {
		return true
	}
	conditionA, conditionB := nodes.Condition(a, corev1.NodeNetworkUnavailable), nodes.Condition(b, corev1.NodeNetworkUnavailable)
	return a.UID != b.UID || a.Spec.ProviderID != b.Spec.ProviderID || !slices.Equal(nodes.PodCIDRs(a), nodes.PodCIDRs(b)) ||
		!maps.Equal(a.Labels, b.Labels) || !slices.Equal(nodes.OwnAddresses(a), nodes.OwnAddresses(b)) || nodes.Uninitialized(a) != nodes.Uninitialized(b) ||
		nodes.Ready(a) != nodes.Ready(b) ||
		(conditionA == nil) != (conditionB == nil) || (conditionA != nil && conditionA.Status != conditionB.Status)
}

// Name returns the controller's name.
func (c *Controller) Name() string { return controllerName }

// HealthChecker checks whether the controller's passes end.
func (c *Controller) HealthChecker() healthz.UnnamedHealthChecker { return healthCheck{c} }

type healthCheck struct{ c *Controller }

// Check implements healthz.UnnamedHealthChecker.
func (h healthCheck) Check(*http.Request) error {
	since := h.c.busySince.Load()
	if since == nil {
		return nil
	}
	if took := time.Since(*since); took > stuckAfter {
		return fmt.Errorf("the comparison of nodes and route tables runs for %s, longer than %s", took.Round(time.Second), stuckAfter)
	}
	return nil
}

// Run works until the context ends. It waits for the node cache first.
func (c *Controller) Run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.opts.Nodes.Informer().HasSynced) {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { c.conditions.run(ctx) })
	group.Go(func() { c.watchKey(ctx) })
	c.queue.Add(taskRoutes)
	workers.Run(ctx, c.queue, 2, c.handle)
}

// watchKey makes a pass that waits for nothing when another access key comes into use.
func (c *Controller) watchKey(ctx context.Context) {
	if c.opts.KeyGeneration == nil {
		return
	}
	generation := c.opts.KeyGeneration(ctx)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := c.opts.KeyGeneration(ctx)
		if now == generation {
			return
		}
		generation = now
		klog.FromContext(ctx).Info("Another access key is in use; retrying what the cloud rejected")
		c.newKey.Store(true)
		c.Resync()
	}, keyCheck)
}

// Resync compares nodes and tables now, when something changed that concerns all.
func (c *Controller) Resync() {
	c.checks.resync()
	for _, t := range []task{taskRoutes, taskChecks} {
		c.queue.Forget(t)
		c.queue.Add(t)
	}
}

// signal asks for a pass after a node event. Nodes that join together share a batch, so the pass waits a moment for more of
// them, unless they fill one.
func (c *Controller) signal() {
	if c.signals.Add(1) >= int64(c.opts.BatchSize) {
		c.queue.Add(taskRoutes)
		return
	}
	c.queue.AddAfter(taskRoutes, c.opts.Quiet)
}

func (c *Controller) handle(ctx context.Context, t task) error {
	run := c.compare
	if t == taskChecks {
		run = c.check
	}
	err := run(ctx)
	if err != nil && ctx.Err() == nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Task failed", "task", t)
	}
	return err
}

// compare makes a pass over all nodes and tables.
func (c *Controller) compare(ctx context.Context) error {
	c.signals.Store(0)
	now := time.Now()
	c.busySince.Store(&now)
	defer c.busySince.Store(nil)
	if c.newKey.Swap(false) {
		c.pass.forgetRefusals()
	}
	next, err := c.pass.run(ctx)
	if err != nil {
		passErrors.Inc()
		return err
	}
	c.queue.AddAfter(taskRoutes, time.Until(next))
	return nil
}

// check switches source/destination checks off where it is time. What fails has a time of its own, so that it holds up nothing else.
func (c *Controller) check(ctx context.Context) error {
	next := c.checks.next()
	if !next.IsZero() && !next.After(time.Now()) {
		if err := c.checks.pass(ctx); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Switching source/destination checks off")
		}
		// What is known now may be what nodes waited for.
		c.queue.AddAfter(taskRoutes, c.opts.Quiet)
		next = c.checks.next()
	}
	if !next.IsZero() {
		c.queue.AddAfter(taskChecks, time.Until(next))
	}
	return nil
}
