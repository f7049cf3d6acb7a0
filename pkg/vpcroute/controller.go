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
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/healthz"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// controllerName is the stock route controller's, so that --controllers and RBAC names mean the same.
const controllerName = "node-route-controller"

// stuckAfter is how long a pass may take before the controller counts as unhealthy. A pass waits for the rate limit and
// for a busy cloud, a few minutes at most.
const stuckAfter = 15 * time.Minute

// Controller keeps the route tables and the nodes' conditions as the nodes want them. Node events only signal it; every
// pass compares all nodes with all tables anew.
type Controller struct {
	opts       Options
	writer     *Writer
	events     *events.Recorder
	conditions *conditions
	checks     *sourceDest
	queue      *taskQueue
	// signals counts the node events since the last pass began.
	signals atomic.Int64
	// busySince is when the running pass began, in nanoseconds since 1970; 0 between passes.
	busySince atomic.Int64
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
		opts: opts, writer: writer, events: recorder, queue: newTaskQueue(),
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
	if joins(node, err == nil && nodes.ExclusionLabel(node) == "", time.Now()) && nodes.Condition(node, corev1.NodeNetworkUnavailable) == nil {
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
		!maps.Equal(a.Labels, b.Labels) || nodes.InternalIP(a) != nodes.InternalIP(b) || nodes.Uninitialized(a) != nodes.Uninitialized(b) ||
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
	if since == 0 {
		return nil
	}
	if took := time.Since(time.Unix(0, since)); took > stuckAfter {
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
	var workers sync.WaitGroup
	defer workers.Wait()
	workers.Go(func() { c.conditions.run(ctx) })
	workers.Go(func() { c.watchKey(ctx) })
	c.queue.add(taskRoutes, 0)
	c.queue.run(ctx, c.handle)
}

// Resync compares nodes and tables now, when something changed that concerns all.
func (c *Controller) Resync() {
	for _, t := range []task{taskRoutes, taskChecks} {
		c.queue.unblock(t)
	}
}

// signal asks for a pass after a node event. Nodes that join together share a batch, so the pass waits a moment for more of
// them, unless they fill one.
func (c *Controller) signal() {
	if c.signals.Add(1) >= int64(c.opts.BatchSize) {
		c.queue.add(taskRoutes, 0)
		return
	}
	c.queue.add(taskRoutes, c.opts.Quiet)
}

func (c *Controller) handle(ctx context.Context, t task) error {
	if t == taskChecks {
		c.queue.block(taskChecks, readEvery)
		err := c.checks.pass(ctx)
		// What is known now may be what nodes waited for.
		c.queue.add(taskRoutes, c.opts.Quiet)
		return err
	}
	c.signals.Store(0)
	c.busySince.Store(time.Now().UnixNano())
	defer c.busySince.Store(0)
	if c.newKey.Swap(false) {
		c.pass.forgetRefusals()
	}
	next, err := c.pass.run(ctx)
	if err != nil {
		passErrors.Inc()
		return err
	}
	c.queue.add(taskRoutes, time.Until(next))
	return nil
}
