package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
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
// of its own. Besides reacting to changes it compares every Node once per period.
func NewController(instances *Instances, client kubernetes.Interface, period time.Duration) (*Controller, error) {
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
	return old.Spec.ProviderID != node.Spec.ProviderID || !maps.Equal(old.Labels, node.Labels) ||
		nodes.Uninitialized(old) != nodes.Uninitialized(node) || nodes.Ready(node) && !nodes.Ready(old) ||
		node.Spec.ProviderID == "" && nodeAddress(old) != nodeAddress(node)
}

// Run works until the context ends.
func (c *Controller) Run(ctx context.Context) {
	defer c.queue.ShutDown() // where the context ends before the cache is filled
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
	labels, spec, err := c.instances.changeOf(ctx, node)
	if err != nil || len(labels)+len(spec) == 0 {
		return err
	}
	data, err := PatchOf(node, labels, spec)
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
	klog.FromContext(ctx).Info("Patched a Node", "node", name, "labels", labels, "spec", spec)
	return nil
}

// changeOf compares the Node with its instance, and returns the labels and fields of its spec that it lacks. Nodes that wait for their
// initialization are left to the stock controller, which writes the same, unless they are on premises: then the uninitialized taint goes.
// Where ECS shows no instance, an event says so and nothing changes.
func (i *Instances) changeOf(ctx context.Context, node *corev1.Node) (labels map[string]string, spec map[string]any, err error) {
	labels, spec = map[string]string{}, map[string]any{}
	onPremises, uninitialized := i.opts.onPremises(node), nodes.Uninitialized(node)
	if onPremises && uninitialized {
		spec["taints"] = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
			return taint.Key == cloudproviderapi.TaintExternalCloudProvider
		})
	}
	if onPremises && !nodes.IsOnPremises(node) {
		labels[nodes.LabelOnPremises] = "true"
	}
	if onPremises || uninitialized {
		return labels, spec, nil
	}
	instance, err := i.find(ctx, node)
	switch {
	case untouchable(err), errors.Is(err, ErrProviderIDMalformed), errors.Is(err, errRefusedID):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	if node.Spec.ProviderID == "" {
		spec["providerID"] = i.newProviderID(instance)
	}
	for key, value := range instanceLabels(instance) {
		if current, ok := node.Labels[key]; !ok || current != value {
			labels[key] = value
		}
	}
	return labels, spec, nil
}

// instanceLabels are all labels that a Node has of its instance.
func instanceLabels(instance alicloud.Instance) map[string]string {
	labels := validLabels(map[string]string{
		corev1.LabelInstanceType: instance.Type, corev1.LabelInstanceTypeStable: instance.Type,
		corev1.LabelFailureDomainBetaZone: instance.ZoneID, corev1.LabelTopologyZone: instance.ZoneID,
		corev1.LabelFailureDomainBetaRegion: instance.RegionID, corev1.LabelTopologyRegion: instance.RegionID,
	})
	maps.Copy(labels, labelsOf(instance))
	return labels
}

// PatchOf returns a merge patch that the API server refuses with a conflict unless the Node is still the one that was read: neither a
// provider ID that somebody else set meanwhile, nor a taint that somebody else added, nor a new Node of the same name is overwritten.
func PatchOf(node *corev1.Node, labels map[string]string, spec map[string]any) ([]byte, error) {
	type metadata struct {
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels,omitempty"`
	}
	data, err := json.Marshal(struct {
		Metadata metadata       `json:"metadata"`
		Spec     map[string]any `json:"spec,omitempty"`
	}{metadata{node.UID, node.ResourceVersion, labels}, spec})
	if err != nil {
		return nil, fmt.Errorf("encode the patch of node %s: %w", node.Name, err)
	}
	return data, nil
}
