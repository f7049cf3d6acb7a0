package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
)

// allChecks is the key of the source/destination checks in the queue of nodes. No node has the empty name.
const allChecks = ""

// UnroutedController does what is left to do for nodes in clusters whose routes are switched off. It clears a NetworkUnavailable
// condition that a route controller left behind: nothing else would ever clear it, and the node would stay unschedulable. And it
// switches off the nodes' source/destination checks: whoever routes pod addresses in the VPC instead, such as flannel or a
// user, needs that too.
type UnroutedController struct {
	opts Options
	// patience is how long a condition has stood before it is cleared.
	patience time.Duration
	queue    workqueue.TypedRateLimitingInterface[string]
	checks   *sourceDest
}

// leftOutPatience is longer than a route controller that runs needs to make a node's routes work.
const leftOutPatience = 10 * time.Minute

// NewLeftOutController returns a controller for programs that leave the route controller out: it clears conditions only, and only those that
// nobody else has cleared for a while, for the route controller of another program may be at work.
func NewLeftOutController(opts Options) (*UnroutedController, error) {
	opts.SkipSourceDestCheck = true
	c, err := NewUnroutedController(opts)
	if err == nil {
		c.patience = leftOutPatience
	}
	return c, err
}

// NewUnroutedController returns the controller. It asks for the node informer and does not wait for it.
func NewUnroutedController(opts Options) (*UnroutedController, error) {
	if opts.Client == nil || opts.Nodes == nil {
		return nil, errors.New("the controller needs a Kubernetes client and nodes")
	}
	opts = opts.withDefaults()
	c := &UnroutedController{opts: opts, queue: newQueue[string](), checks: newSourceDest(opts, events.New(opts.Recorder, eventInterval))}
	enqueue := func(object any) {
		node, ok := object.(*corev1.Node)
		if ok && leftBehind(node) {
			c.queue.Add(node.Name)
		}
		if ok && !opts.SkipSourceDestCheck {
			c.queue.AddAfter(allChecks, opts.Quiet)
		}
	}
	_, err := opts.Nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				enqueue(after)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	return c, nil
}

// Name returns the controller's name.
func (c *UnroutedController) Name() string { return controllerName }

// Run works until the context ends.
func (c *UnroutedController) Run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	workers.Run(ctx, c.queue, 2, func(ctx context.Context, name string) error {
		if name == allChecks {
			return c.check(ctx)
		}
		err := c.clear(ctx, name)
		if err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Clearing the NetworkUnavailable condition", "node", name)
		}
		return err
	})
}

// check switches off the source/destination checks of all nodes that have an instance.
func (c *UnroutedController) check(ctx context.Context) error {
	all, err := c.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	instances := map[string]*corev1.Node{}
	for _, node := range all {
		instance, err := c.opts.InstanceID(node)
		if err == nil && nodes.ExclusionLabel(node) == "" {
			instances[instance] = node
		}
	}
	next := c.checks.want(instances)
	if !next.IsZero() && !next.After(time.Now()) {
		if err := c.checks.pass(ctx); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Switching source/destination checks off")
		}
		next = c.checks.next()
	}
	if !next.IsZero() {
		c.queue.AddAfter(allChecks, time.Until(next))
	}
	return nil
}

func (c *UnroutedController) clear(ctx context.Context, name string) error {
	node, err := c.opts.Nodes.Lister().Get(name)
	if err != nil || !leftBehind(node) {
		return nil //nolint:nilerr // a node that is gone needs nothing
	}
	if stood := time.Since(nodes.Condition(node, corev1.NodeNetworkUnavailable).LastTransitionTime.Time); stood < c.patience {
		c.queue.AddAfter(name, min(c.patience, c.patience-stood))
		return nil
	}
	return patchCondition(ctx, c.opts.Client, node, conditionUnmanaged())
}

// leftBehind reports whether the condition keeps pods away and was written by a route controller.
func leftBehind(node *corev1.Node) bool {
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == conditionMissing
}
