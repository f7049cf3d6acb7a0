package lightnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// virtualPoll is how often the pods of a virtual node are listed: there are a few, and nobody waits for microseconds.
const virtualPoll = 200 * time.Millisecond

// VirtualNode configures RunVirtual. All are required.
type VirtualNode struct {
	Name   string
	Client kubernetes.Interface
	// Heartbeat is how often the node's Lease is renewed, a second or more.
	Heartbeat time.Duration
	// Attach gives a container instance its network interface and returns its address and a way to listen there. Detach takes it away.
	Attach func(ctx context.Context, id string) (address netip.Addr, listen Listen, err error)
	Detach func(id string) error
}

// Listen opens a TCP listener at a container instance.
type Listen func(ctx context.Context, address string) (net.Listener, error)

// virtualNode is a node without a machine that runs.
type virtualNode struct {
	VirtualNode
	pods map[types.UID]*containerInstance
}

type containerInstance struct {
	id      string
	address netip.Addr
	servers []*http.Server
}

// RunVirtual registers a node without a machine, as Alibaba Cloud's virtual nodes are, and runs its pods until ctx ends: each is a container
// instance (ECI) with a network interface of its own in a vSwitch. It looks as pods of light nodes do. The Node stays, as that of a machine
// that lost its power.
func RunVirtual(ctx context.Context, opts VirtualNode) error {
	n := &virtualNode{VirtualNode: opts, pods: map[types.UID]*containerInstance{}}
	node, err := n.register(ctx)
	if err != nil {
		return wrap(err, "register node %s", n.Name)
	}
	leases := newHeartbeats(n.Client, n.Heartbeat)
	leases.add(node)
	var group sync.WaitGroup
	group.Go(func() { leases.run(ctx) })
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		// The next poll is the next try; what was on its way when the node ended went wrong for no reason.
		if err := n.follow(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Virtual node could not bring its pods up to date", "node", n.Name)
		}
	}, virtualPoll)
	group.Wait()
	var errs []error
	for uid := range n.pods {
		errs = append(errs, n.end(uid))
	}
	return errors.Join(errs...)
}

// register makes the Node: a virtual node has no cloud controller manager to wait for, so no taint of one.
func (n *virtualNode) register(ctx context.Context) (*corev1.Node, error) {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods: resource.MustParse("1000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
			"type": "virtual-kubelet", corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux",
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "virtual-kubelet.io/provider", Value: "alibabacloud",
			Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
	setReady(node, metav1.Now())
	created, err := n.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return n.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	}
	return created, err
}

// follow starts pods that are new on the node, reports what has changed, and ends those that are to go.
func (n *virtualNode) follow(ctx context.Context) error {
	list, err := n.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", n.Name, err)
	}
	exist := map[types.UID]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		exist[pod.UID] = true
		switch {
		case pod.DeletionTimestamp != nil:
			err = errors.Join(err, n.end(pod.UID), confirmDeletion(ctx, n.Client, pod))
		case finished(pod):
			err = errors.Join(err, n.end(pod.UID))
		default:
			err = errors.Join(err, wrap(n.run(ctx, pod), "run pod %s", pod.Name))
		}
	}
	for uid := range n.pods {
		if !exist[uid] {
			err = errors.Join(err, n.end(uid))
		}
	}
	return err
}

// run makes the container instance of a pod, and reports it.
func (n *virtualNode) run(ctx context.Context, pod *corev1.Pod) error {
	p := n.pods[pod.UID]
	if p == nil {
		p = &containerInstance{id: "eci-" + string(pod.UID)}
		var listen Listen
		var err error
		if p.address, listen, err = n.Attach(ctx, p.id); err != nil {
			return err
		}
		n.pods[pod.UID] = p
		for _, port := range tcpPorts(pod) {
			listener, err := listen(ctx, net.JoinHostPort(p.address.String(), strconv.Itoa(int(port))))
			if err != nil {
				return errors.Join(err, n.end(pod.UID))
			}
			server := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: n.answer(pod.Name)}
			p.servers = append(p.servers, server)
			go func() { _ = server.Serve(listener) }() // ends with the pod
		}
	}
	status := nextStatus(pod, p.address, []netip.Addr{p.address}, metav1.Now())
	if apiequality.Semantic.DeepEqual(status, pod.Status) {
		return nil
	}
	pod.Status = status
	_, err := n.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (n *virtualNode) answer(pod string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Node", n.Name)
		w.Header().Set("Source", r.RemoteAddr)
		_, _ = fmt.Fprintln(w, pod) // the asker is gone when this fails
	}
}

// end takes the container instance of a pod away.
func (n *virtualNode) end(uid types.UID) error {
	p := n.pods[uid]
	if p == nil {
		return nil
	}
	delete(n.pods, uid)
	var errs []error
	for _, server := range p.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(append(errs, n.Detach(p.id))...)
}
