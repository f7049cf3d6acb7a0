package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/controller-manager/pkg/healthz"
)

// controllerName is the stock route controller's, so that --controllers and RBAC names mean the same.
const controllerName = "node-route-controller"

// stuckAfter is how long a pass may take before the controller counts as unhealthy. A pass waits for the rate limit and
// for a busy cloud, a few minutes at most.
const stuckAfter = 15 * time.Minute

// Controller keeps the route tables and the nodes' conditions as the nodes want them. Node events only signal it; every
// pass judges all nodes and tables anew.
type Controller struct {
	opts       Options
	writer     *Writer
	events     *events
	conditions *conditions
	checks     *sourceDest
	queue      *taskQueue
	// signals counts the node events since the last pass began.
	signals atomic.Int64
	// busySince is when the running pass began, in nanoseconds since 1970; 0 between passes.
	busySince atomic.Int64

	pass *pass
}

// NewController returns the controller that works through the writer. It asks for the node informer and does not wait
// for it.
func NewController(opts Options, writer *Writer) (*Controller, error) {
	if opts.Client == nil || writer == nil {
		return nil, errors.New("the route controller needs a Kubernetes client and a writer")
	}
	opts = opts.withDefaults()
	events := newEvents(opts.Recorder)
	c := &Controller{
		opts: opts, writer: writer, events: events, queue: newTaskQueue(),
		conditions: newConditions(opts.Client, opts.Nodes.Lister()),
		checks:     newSourceDest(opts.API, opts.Config.VPCID, events),
	}
	c.pass = newPass(c)
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

// changed reports whether a node changed in what routes and conditions depend on. Kubelets update their nodes every few
// seconds, and none of that matters here.
func changed(before, after any) bool {
	a, okA := before.(*corev1.Node)
	b, okB := after.(*corev1.Node)
	if !okA || !okB {
		return true
	}
	_, conditionA := nodeutil.GetNodeCondition(&a.Status, corev1.NodeNetworkUnavailable)
	_, conditionB := nodeutil.GetNodeCondition(&b.Status, corev1.NodeNetworkUnavailable)
	return a.UID != b.UID || a.Spec.ProviderID != b.Spec.ProviderID || !slices.Equal(podCIDRs(a), podCIDRs(b)) ||
		!maps.Equal(a.Labels, b.Labels) || internalIP(a) != internalIP(b) ||
		(conditionA == nil) != (conditionB == nil) || (conditionA != nil && conditionA.Status != conditionB.Status)
}

// Name returns the controller's name.
func (c *Controller) Name() string { return controllerName }

// HealthChecker tells whether the controller's passes end.
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
	c.queue.add(taskRoutes, 0)
	c.queue.run(ctx, c.handle)
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
		return c.checks.pass(ctx)
	}
	c.signals.Store(0)
	c.busySince.Store(time.Now().UnixNano())
	defer c.busySince.Store(0)
	next, err := c.pass.run(ctx)
	if err != nil {
		passErrors.Inc()
		return err
	}
	c.queue.add(taskRoutes, time.Until(next))
	return nil
}

// jittered spreads a period over nine to eleven tenths of it, so that clusters of one account do not read together.
func jittered(period time.Duration) time.Duration {
	return period*9/10 + rand.N(period/5)
}
