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
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/controller-manager/pkg/healthz"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
)

// controllerName is the stock route controller's, so that --controllers and RBAC names mean the same.
const controllerName = "node-route-controller"

// quiet is how long a pass waits for further events, so that nodes that join together share a batch.
const quiet = 100 * time.Millisecond

// The keys of the controller's queue, which is its only clock.
const (
	comparison       = "routes" // all nodes with all route tables
	sourceDestChecks = "checks" // of those instances that are due
)

// Controller compares all nodes anew after every change of one, and when time is over. What it compares them with is the route tables of
// the VPC, or, where routes are switched off, nothing.
type Controller struct {
	opts       Options
	writer     *Writer // nil where routes are switched off
	conditions *conditions
	checks     *sourceDest
	report     reporter
	queue      workqueue.TypedRateLimitingInterface[string]
	// busySince is when the running pass began, nil between passes.
	busySince atomic.Pointer[time.Time]

	// What a pass leaves to the next one: the tables that it managed, and that it found nothing to change.
	managed       []string
	settledBefore bool
	// readAfter is the oldest read that is still good enough.
	readAfter time.Time
	// drift and poll are when the tables are to be read again: for what others changed, and for what the cloud is still
	// at work on. poll is zero when nothing settles; polls counts the reads for it.
	drift, poll time.Time
	polls       int
}

// NewController returns the controller that keeps the route tables and the nodes' conditions as the nodes want them, through the writer. It
// asks for the node informer and does not wait for it.
//
// Without a writer, where routes are switched off, it does what is left to do: it clears the NetworkUnavailable conditions that a route
// controller left behind, which nothing else would, and switches off the nodes' source/destination checks, for whoever routes pod addresses
// instead, such as flannel or a user, needs that too.
func NewController(opts Options, writer *Writer) (*Controller, error) {
	if opts.Client == nil || opts.Nodes == nil {
		return nil, errors.New("the route controller needs a Kubernetes client and nodes")
	}
	opts = opts.withDefaults()
	c := &Controller{
		opts: opts, writer: writer, conditions: newConditions(opts.Client, opts.Nodes.Lister()),
		report: reporter{events.New(opts.Recorder, eventInterval)},
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, maxBackoff)),
	}
	c.checks = newSourceDest(opts, c.report, func(at time.Time) { c.queue.AddAfter(sourceDestChecks, time.Until(at)) })
	_, err := opts.Nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.signal() },
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

// NewLeftOutController returns a controller for programs that leave the route controller out: it clears conditions only, and only those
// that nobody else has cleared for a while, for the route controller of another program may be at work.
func NewLeftOutController(opts Options) (*Controller, error) {
	opts.SkipSourceDestCheck, opts.clearAfter = true, waits.NodeUnrouted
	return NewController(opts, nil)
}

// changed reports whether a node changed in what routes and conditions depend on. Kubelets update their nodes every few
// seconds, and none of that matters here.
func changed(before, after any) bool {
	a, okA := before.(*corev1.Node)
	b, okB := after.(*corev1.Node)
	if !okA || !okB {
		return true
	}
	network := func(node *corev1.Node) (status corev1.ConditionStatus) {
		if condition := nodes.Condition(node, corev1.NodeNetworkUnavailable); condition != nil {
			status = condition.Status
		}
		return status
	}
	return a.UID != b.UID || a.Spec.ProviderID != b.Spec.ProviderID || !slices.Equal(nodes.PodCIDRs(a), nodes.PodCIDRs(b)) ||
		!maps.Equal(a.Labels, b.Labels) || !slices.Equal(nodes.OwnAddresses(a), nodes.OwnAddresses(b)) ||
		nodes.Uninitialized(a) != nodes.Uninitialized(b) || nodes.Ready(a) != nodes.Ready(b) || network(a) != network(b)
}

// Name returns the controller's name.
func (c *Controller) Name() string { return controllerName }

// HealthChecker checks whether the controller's passes end.
func (c *Controller) HealthChecker() healthz.UnnamedHealthChecker { return c }

// Check implements healthz.UnnamedHealthChecker.
func (c *Controller) Check(*http.Request) error {
	since := c.busySince.Load()
	if since == nil || time.Since(*since) <= waits.PassOfRoutes {
		return nil
	}
	return fmt.Errorf("the comparison of nodes and route tables runs for %s, longer than %s", time.Since(*since).Round(time.Second),
		waits.PassOfRoutes)
}

// Run works until the context ends. It waits for the node cache first.
func (c *Controller) Run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer c.queue.ShutDown() // where the context ends before the cache is filled
	defer c.conditions.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.opts.Nodes.Informer().HasSynced) {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { c.conditions.run(ctx) })
	c.queue.Add(comparison)
	workers.Run(ctx, c.queue, 2, c.handle) // neither of the keys waits for the other
}

// handle does what is due.
func (c *Controller) handle(ctx context.Context, key string) error {
	if key == comparison {
		return c.compare(ctx)
	}
	if err := c.checks.pass(ctx); err != nil && ctx.Err() == nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Switching source/destination checks off")
	}
	c.signal() // what is known now may be what nodes waited for
	return nil
}

// Resync compares nodes and tables now, when something changed that concerns all.
func (c *Controller) Resync() { c.queue.Add(comparison) }

// signal asks for a pass after a node event.
func (c *Controller) signal() { c.queue.AddAfter(comparison, quiet) }

// compare makes a pass over all nodes and tables.
func (c *Controller) compare(ctx context.Context) error {
	now := time.Now()
	c.busySince.Store(&now)
	defer c.busySince.Store(nil)
	makePass := c.pass
	if c.writer == nil {
		makePass = c.clear
	}
	next, err := makePass(ctx)
	if err != nil {
		passErrors.Inc()
		if ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Comparing nodes with route tables and conditions")
		}
		return err
	}
	if !next.IsZero() {
		c.queue.AddAfter(comparison, time.Until(next))
	}
	return nil
}

// clear says which conditions are to be cleared, those that have stood for so long, and which checks are to be off. It returns when the
// next condition has stood for long enough.
func (c *Controller) clear(context.Context) (next time.Time, err error) {
	all, err := c.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return time.Time{}, fmt.Errorf("list nodes: %w", err)
	}
	instances, unmanaged := map[string]*corev1.Node{}, map[*corev1.Node]string{}
	for _, node := range all {
		if instance, err := c.opts.InstanceID(node); err == nil && nodes.ExclusionLabel(node) == "" && !c.opts.SkipSourceDestCheck {
			instances[instance] = node
		}
		if !leftBehind(node) {
			continue
		}
		wait := c.opts.clearAfter - time.Since(nodes.Condition(node, corev1.NodeNetworkUnavailable).LastTransitionTime.Time)
		if wait > 0 {
			next = earliest(next, time.Now().Add(min(wait, c.opts.clearAfter))) // the time may be of another clock, and ahead
			continue
		}
		unmanaged[node] = conditionDisabled
	}
	c.checks.want(instances)
	c.conditions.set(unmanaged)
	return next, nil
}

// leftBehind reports whether the condition keeps pods away and was written by a route controller.
func leftBehind(node *corev1.Node) bool {
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == conditionMissing
}
