package sources

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// Pods knows the addresses of pods, of which nothing else is kept, in the namespaces that were asked for. A cluster has many pods, and few
// namespaces whose Services have them as backend servers.
type Pods struct {
	ctx    context.Context //nolint:containedctx // the life of the process: watches outlive the pass that begins them
	client kubernetes.Interface
	// Wake has a pass made over a Service.
	Wake func(types.NamespacedName)

	mu         sync.Mutex // guards namespaces
	namespaces map[string]*NamespacePods
}

// NewPods returns one that watches until ctx is done. It begins to watch a namespace when it is first asked for it.
func NewPods(ctx context.Context, client kubernetes.Interface) *Pods {
	return &Pods{ctx: ctx, client: client, Wake: func(types.NamespacedName) {}, namespaces: map[string]*NamespacePods{}}
}

// PodsIn returns the pods of a namespace. Whoever asks first waits until they are read, but not for long.
func (p *Pods) PodsIn(ctx context.Context, namespace string) *NamespacePods {
	pods, first := p.podsOf(namespace)
	if !first {
		return pods
	}
	go p.newReflector(namespace, pods).RunWithContext(p.ctx)
	wait, cancel := context.WithTimeout(ctx, waits.PodsRead)
	defer cancel()
	select {
	case <-pods.read:
	case <-wait.Done():
	}
	return pods
}

func (p *Pods) podsOf(namespace string) (pods *NamespacePods, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.namespaces[namespace]; ok {
		return found, false
	}
	pods = &NamespacePods{wake: p.Wake, read: make(chan struct{}), placed: map[string]placedPod{},
		named: map[types.NamespacedName]sets.Set[string]{}}
	p.namespaces[namespace] = pods
	return pods, true
}

func (p *Pods) newReflector(namespace string, into *NamespacePods) *cache.Reflector {
	client := p.client.CoreV1().Pods(namespace)
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, p.client)
	return cache.NewReflectorWithOptions(source, &corev1.Pod{}, into, cache.ReflectorOptions{Name: "pods of " + namespace})
}

// NamespacePods implements [cache.ReflectorStore].
type NamespacePods struct {
	wake func(types.NamespacedName)
	// read is closed when the pods were first read.
	read chan struct{}

	mu     sync.Mutex // guards the rest
	placed map[string]placedPod
	// named are the pods whose addresses matter to a Service, by the Service.
	named map[types.NamespacedName]sets.Set[string]
}

// placedPod is where a pod is. The status of one that is on no node says nothing: no kubelet has written it.
type placedPod struct {
	node      string
	addresses []netip.Addr
}

// NodesOfPods returns the node of each of the pods that has the address, empty for one that has not; known is false before the pods were
// read. The Service has a pass when an address of one of them changes.
func (p *NamespacePods) NodesOfPods(service types.NamespacedName, pods []PodAddress) (nodes []string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	named := sets.New[string]()
	for _, pod := range pods {
		node := ""
		if placed := p.placed[pod.Name]; slices.Contains(placed.addresses, pod.Address) {
			node = placed.node
		}
		nodes = append(nodes, node)
		named.Insert(pod.Name)
	}
	p.named[service] = named
	select {
	case <-p.read:
		return nodes, true
	default:
		return nodes, false
	}
}

// ForgetService drops what a Service asked for.
func (p *Pods) ForgetService(service types.NamespacedName) {
	p.mu.Lock()
	pods, ok := p.namespaces[service.Namespace]
	p.mu.Unlock()
	if !ok {
		return
	}
	pods.mu.Lock()
	defer pods.mu.Unlock()
	delete(pods.named, service)
}

// setPod notes the addresses of a pod, none for one that is gone, and wakes the Services that name it.
func (p *NamespacePods) setPod(name string, pod placedPod) {
	p.mu.Lock()
	before := p.placed[name]
	if len(pod.addresses) == 0 {
		delete(p.placed, name)
	} else {
		p.placed[name] = pod
	}
	var concerned []types.NamespacedName
	for service, named := range p.named {
		if named.Has(name) && !slices.Equal(before.addresses, pod.addresses) {
			concerned = append(concerned, service)
		}
	}
	p.mu.Unlock()
	for _, service := range concerned {
		p.wake(service)
	}
}

// Add implements [cache.ReflectorStore].
func (p *NamespacePods) Add(object any) error { return p.Update(object) }

// Update implements [cache.ReflectorStore].
func (p *NamespacePods) Update(object any) error {
	pod, err := podOf(object)
	if err == nil {
		p.setPod(pod.Name, placeOf(pod))
	}
	return err
}

// Delete implements [cache.ReflectorStore].
func (p *NamespacePods) Delete(object any) error {
	pod, err := podOf(object)
	if err == nil {
		p.setPod(pod.Name, placedPod{})
	}
	return err
}

// Replace implements [cache.ReflectorStore].
func (p *NamespacePods) Replace(objects []any, _ string) error {
	all := make(map[string]placedPod, len(objects))
	for _, object := range objects {
		pod, err := podOf(object)
		if err != nil {
			return err
		}
		if placed := placeOf(pod); len(placed.addresses) > 0 {
			all[pod.Name] = placed
		}
	}
	p.mu.Lock()
	p.placed = all
	select {
	case <-p.read:
	default:
		close(p.read)
	}
	concerned := make([]types.NamespacedName, 0, len(p.named))
	for service := range p.named {
		concerned = append(concerned, service)
	}
	p.mu.Unlock()
	for _, service := range concerned {
		p.wake(service)
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*NamespacePods) Resync() error { return nil }

func podOf(object any) (*corev1.Pod, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("a watch of pods has sent a %T", object)
	}
	return pod, nil
}

// placeOf returns where a pod is. One that has ended still shows the addresses that it had.
func placeOf(pod *corev1.Pod) placedPod {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return placedPod{}
	}
	placed := placedPod{node: pod.Spec.NodeName}
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			placed.addresses = append(placed.addresses, address)
		}
	}
	return placed
}

// PodAddress is what an EndpointSlice says of a pod.
type PodAddress struct {
	Name    string
	Address netip.Addr
}
