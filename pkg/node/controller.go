package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
)

const (
	// controllerWorkers is how many Nodes are patched at the same time.
	controllerWorkers = 4
	// labelDelay is how long a change of labels waits to be repaired: another program that insists on its own labels costs one
	// patch per delay, not a storm.
	labelDelay = 2 * time.Second
	// minRetry and maxRetry bound the time after which a Node that failed is tried again.
	minRetry = time.Second
	maxRetry = 5 * time.Minute
)

// Controller keeps provider ID and labels of initialized Nodes as ECS shows them, and initializes Nodes on premises. The stock
// node controller does neither: it writes labels once, while it takes the uninitialized taint off, and keeps that taint on
// Nodes without a provider ID.
type Controller struct {
	instances *Instances
	client    kubernetes.Interface
	synced    cache.InformerSynced
	queue     workqueue.TypedRateLimitingInterface[string]
	period    time.Duration
}

// NewController returns a controller over the same snapshot that answers the stock controllers, so that it makes almost no calls
// of its own. Besides reacting to changes it compares every Node once per period. The instances must have an informer of
// nodes.
func NewController(instances *Instances, client kubernetes.Interface, period time.Duration) (*Controller, error) {
	if instances.opts.Nodes == nil {
		return nil, errors.New("the node controller needs an informer of nodes")
	}
	informer := instances.opts.Nodes.Informer()
	c := &Controller{
		instances: instances, client: client, synced: informer.HasSynced, period: period,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry)),
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if node, ok := object.(*corev1.Node); ok {
				c.queue.Add(node.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(*corev1.Node)
			node, _ := after.(*corev1.Node)
			if old != nil && node != nil && needsReconcile(old, node) {
				c.queue.AddAfter(node.Name, labelDelay)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	return c, nil
}

// Name names the controller.
func (c *Controller) Name() string { return "alicloud-node-controller" }

// needsReconcile reports whether a change of a Node may make it differ from its instance, or the instance worth reading.
func needsReconcile(old, node *corev1.Node) bool {
	if old.Spec.ProviderID != node.Spec.ProviderID || nodes.Uninitialized(old) != nodes.Uninitialized(node) ||
		nodes.ExclusionLabel(old) != nodes.ExclusionLabel(node) || nodes.Ready(node) && !nodes.Ready(old) {
		return true
	}
	if node.Spec.ProviderID == "" && nodeAddress(old) != nodeAddress(node) {
		return true
	}
	for _, key := range reconciledLabels {
		if old.Labels[key] != node.Labels[key] {
			return true
		}
	}
	return false
}

// Run works until the context ends.
func (c *Controller) Run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { workers.Run(ctx, c.queue, controllerWorkers, c.handle) })
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, node := range c.instances.nodes() {
			c.queue.Add(node.Name)
		}
	}, c.period)
	group.Wait()
}

// handle reconciles a Node. The log has the first of several failures in a row.
func (c *Controller) handle(ctx context.Context, name string) error {
	err := c.reconcile(ctx, name)
	if err != nil && ctx.Err() == nil && c.queue.NumRequeues(name) == 0 && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Error(err, "Reconciling a Node with its instance failed; retrying", "node", name)
	}
	return err
}

// reconcile patches the Node if it differs from what it is to be.
func (c *Controller) reconcile(ctx context.Context, name string) error {
	node, err := c.instances.lister.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read node %s from the cache: %w", name, err)
	}
	diff, err := c.instances.changeOf(ctx, node)
	if err != nil || diff.empty() {
		return err
	}
	data, err := diff.patch(node)
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch node %s: %w", name, err)
	}
	klog.FromContext(ctx).Info("Patched a Node", "node", name, "change", diff.String())
	return nil
}
