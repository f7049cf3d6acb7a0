package vpcroute

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	nodeutil "k8s.io/component-helpers/node/util"
)

// ClearController clears a NetworkUnavailable condition that a route controller left behind. It is for clusters whose
// routes are switched off: there nothing else would ever clear it, and the node would stay unschedulable.
type ClearController struct {
	client kubernetes.Interface
	nodes  coreinformers.NodeInformer
	queue  workqueue.TypedRateLimitingInterface[string]
}

// NewClearController returns the controller. It asks for the node informer and does not wait for it.
func NewClearController(client kubernetes.Interface, nodes coreinformers.NodeInformer) (*ClearController, error) {
	c := &ClearController{
		client: client, nodes: nodes,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	enqueue := func(object any) {
		if node, ok := object.(*corev1.Node); ok && leftBehind(node) {
			c.queue.Add(node.Name)
		}
	}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	return c, nil
}

// Name returns the controller's name.
func (c *ClearController) Name() string { return controllerName }

// Run clears conditions until the context ends.
func (c *ClearController) Run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.clear(ctx, name); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Clearing the NetworkUnavailable condition", "node", name)
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

func (c *ClearController) clear(ctx context.Context, name string) error {
	node, err := c.nodes.Lister().Get(name)
	if err != nil || !leftBehind(node) {
		return nil //nolint:nilerr // a node that is gone needs nothing
	}
	return patchCondition(ctx, c.client, node, corev1.NodeCondition{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: conditionDisabled,
		Message: "This cluster's routes are not managed by the cloud controller manager",
	})
}

// leftBehind reports whether the condition keeps pods away and was written by a route controller.
func leftBehind(node *corev1.Node) bool {
	_, condition := nodeutil.GetNodeCondition(&node.Status, corev1.NodeNetworkUnavailable)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == conditionMissing
}
