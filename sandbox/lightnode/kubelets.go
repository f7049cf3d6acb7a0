package lightnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// workers is how many nodes and pods are written at once: enough to keep a local API server busy, few enough to leave it room.
const workers = 16

// callTimeout bounds one call of the API server, so that a dead one cannot hold up the end of the kubelets.
const callTimeout = 10 * time.Second

// How long an item waits after its first and after many failures. The usual limiter would also hold all retries together to ten a
// second, which a thousand pods that start at once exceed by far.
const (
	retryMin = 5 * time.Millisecond
	retryMax = 10 * time.Second
)

// Instance is what a machine needs to know of the cloud's instance behind it.
type Instance struct {
	ID        string
	Name      string // the node's name if it can be one, else the ID is
	PrivateIP string
	Running   bool
}

// Options configures NewKubelets. Client, Instances, Changed and Network are required.
type Options struct {
	Client kubernetes.Interface
	// Instances lists the cloud's instances. Changed returns a channel that signals the next change of that list; it is asked before
	// the list is read, so that no change is missed. Signals may merge.
	Instances func() []Instance
	Changed   func() <-chan struct{}
	Network   *Network
	// Heartbeat is how often each node's Lease is renewed; 1 s if zero. The control plane's grace period must be a multiple of it.
	Heartbeat time.Duration
	// NodeIP makes kubelets report their machine's address as with --node-ip: as InternalIP and in the annotation
	// alpha.kubernetes.io/provided-node-ip. Without it a kubelet of an external cloud provider reports its hostname only.
	NodeIP bool
	// Runner runs the containers of some pods; nil for none.
	Runner Runner
}

// Kubelets is the fleet of kubelets.
type Kubelets struct {
	Options
	version   string // of the API server, which the kubelets report as their own
	ipam      *ipam
	factories []informers.SharedInformerFactory
	nodes     cache.SharedIndexInformer
	pods      cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[item]
	leases    *heartbeats
	runs      *runs

	mu         sync.Mutex
	registered map[string]bool // by instance ID: kubelets register once per start; guarded by mu
}

// item is one thing to bring up to date: a node by name, or a pod by namespace/name.
type item struct {
	node, pod string
}

// NewKubelets prepares the fleet; Run runs it.
func NewKubelets(opts Options) (*Kubelets, error) {
	version, err := opts.Client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server's version: %w", err)
	}
	if opts.Heartbeat == 0 {
		opts.Heartbeat = time.Second
	}
	k := &Kubelets{
		Options:    opts,
		version:    version.GitVersion,
		ipam:       newIPAM(),
		queue:      workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](retryMin, retryMax)),
		leases:     newHeartbeats(opts.Client, opts.Heartbeat),
		runs:       newRuns(opts.Client, opts.Runner),
		registered: map[string]bool{},
	}
	return k, k.watch()
}

// watch prepares the informers. Pods that no node has yet are not a kubelet's business, and their number can be large.
func (k *Kubelets) watch() error {
	strip := informers.WithTransform(stripManagedFields)
	all := informers.NewSharedInformerFactoryWithOptions(k.Client, 0, strip)
	bound := informers.NewSharedInformerFactoryWithOptions(k.Client, 0, strip, informers.WithTweakListOptions(selectBoundPods))
	k.factories = []informers.SharedInformerFactory{all, bound}
	k.nodes, k.pods = all.Core().V1().Nodes().Informer(), bound.Core().V1().Pods().Informer()
	services, slices := all.Core().V1().Services().Informer(), all.Discovery().V1().EndpointSlices().Informer()
	_, onNode := k.nodes.AddEventHandler(enqueue(k.queue, func(key string) item { return item{node: key} }))
	_, onPod := k.pods.AddEventHandler(enqueue(k.queue, func(key string) item { return item{pod: key} }))
	_, onNodeGone := k.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: k.nodeGone})
	_, onPodGone := k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: k.podGone})
	err := errors.Join(onNode, onPod, onNodeGone, onPodGone,
		k.pods.AddIndexers(cache.Indexers{indexByNode: podNodeIndex}),
		services.AddIndexers(cache.Indexers{indexByNodePort: nodePortIndex}),
		slices.AddIndexers(cache.Indexers{indexByService: sliceServiceIndex}))
	if err != nil {
		return fmt.Errorf("prepare the kubelets' informers: %w", err)
	}
	k.Network.useServices(&serviceCache{services: services.GetIndexer(), slices: slices.GetIndexer()})
	return nil
}

// Run runs the kubelets until ctx ends, and waits for them. Their Nodes stay, as those of machines that lost power.
func (k *Kubelets) Run(ctx context.Context) error {
	for _, factory := range k.factories {
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
	}
	for _, factory := range k.factories {
		if result := factory.WaitForCacheSyncWithContext(ctx); result.Err != nil {
			return fmt.Errorf("fill the kubelets' caches: %w", result.Err)
		}
	}
	var group sync.WaitGroup
	group.Go(func() { <-ctx.Done(); k.queue.ShutDown() })
	group.Go(func() { k.powerLoop(ctx) })
	group.Go(func() { k.leases.run(ctx) })
	for range workers {
		// Requests under way may finish: an API server that is stopped next complains about each one that was broken off.
		group.Go(func() { k.work(context.WithoutCancel(ctx)) })
	}
	group.Wait()
	k.runs.group.Wait() // they ended with their machines
	return nil
}

// work brings items up to date until the queue shuts down.
func (k *Kubelets) work(ctx context.Context) {
	for {
		it, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		err := k.sync(ctx, it)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			k.queue.Forget(it)
		case apierrors.IsConflict(err):
			k.queue.AddRateLimited(it) // somebody else wrote first; the informer brings the newer object
		default:
			klog.FromContext(ctx).Error(err, "Light kubelet could not bring an object up to date", "node", it.node, "pod", it.pod)
			k.queue.AddRateLimited(it)
		}
		k.queue.Done(it)
	}
}

func (k *Kubelets) sync(ctx context.Context, it item) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if it.node != "" {
		return k.syncNode(ctx, it.node)
	}
	return k.syncPod(ctx, it.pod)
}

// stripManagedFields halves the memory that thousands of cached nodes and pods take; nobody here reads them.
func stripManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// deleted is the object that a delete event is about, also when the event itself was missed.
func deleted[T any](obj any) (T, bool) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	object, ok := obj.(T)
	return object, ok
}

// enqueue puts an item for every added or changed object into queue.
func enqueue(queue workqueue.TypedRateLimitingInterface[item], itemOf func(key string) item) cache.ResourceEventHandler {
	add := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(itemOf(key))
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }}
}
