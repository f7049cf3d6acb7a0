package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// UnroutedController does what is left to do for nodes in clusters whose routes are switched off. It clears a NetworkUnavailable
// condition that a route controller left behind: nothing else would ever clear it, and the node would stay unschedulable. And it
// switches off the nodes' source/destination checks: whoever routes pod addresses in the VPC instead, such as flannel or a
// user, needs that too.
type UnroutedController struct {
	opts Options
	// patience is how long a condition has stood before it is cleared.
	patience   time.Duration
	queue      workqueue.TypedRateLimitingInterface[string]
	conditions *conditions
	checks     *sourceDest
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
	c := &UnroutedController{
		opts: opts, queue: newQueue(), conditions: newConditions(opts.Client, opts.Nodes.Lister()), checks: newSourceDest(opts, events.New(opts.Recorder, eventInterval)),
	}
	_, err := opts.Nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.queue.AddAfter(comparison, opts.Quiet) },
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				c.queue.AddAfter(comparison, opts.Quiet)
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
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { c.conditions.run(ctx) })
	group.Go(func() { c.checks.run(ctx, func() {}) })
	workers.Run(ctx, c.queue, 1, c.pass)
}

// pass says which conditions are to be cleared and which checks are to be off.
func (c *UnroutedController) pass(context.Context, string) error {
	all, err := c.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	instances, unmanaged := map[string]*corev1.Node{}, map[string]conditionFor{}
	for _, node := range all {
		if instance, err := c.opts.InstanceID(node); err == nil && nodes.ExclusionLabel(node) == "" && !c.opts.SkipSourceDestCheck {
			instances[instance] = node
		}
		if !leftBehind(node) {
			continue
		}
		if stood := time.Since(nodes.Condition(node, corev1.NodeNetworkUnavailable).LastTransitionTime.Time); stood < c.patience {
			c.queue.AddAfter(comparison, min(c.patience, c.patience-stood))
			continue
		}
		unmanaged[node.Name] = conditionFor{uid: node.UID, available: true, unmanaged: true}
	}
	c.checks.want(instances)
	c.conditions.set(unmanaged)
	return nil
}

// leftBehind reports whether the condition keeps pods away and was written by a route controller.
func leftBehind(node *corev1.Node) bool {
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == conditionMissing
}
