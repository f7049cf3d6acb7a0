// Package virtualnode is a node without a machine, as Alibaba Cloud's virtual nodes are: each of its pods is a container instance (ECI)
// with a network interface of its own in a vSwitch.
//
// Pods run no containers: they are ready at once and answer HTTP on their declared ports with their name, as pods of light nodes do.
package virtualnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// pollPeriod is how often pods are listed: there are a few, and nobody waits for microseconds.
	pollPeriod = 200 * time.Millisecond
	// leaseFactor is how many heartbeats a Lease lasts.
	leaseFactor = 4
)

// Options configures Run. All are required.
type Options struct {
	// Name is the node's.
	Name   string
	Client kubernetes.Interface
	// Heartbeat is how often the node's Lease is renewed, a second or more.
	Heartbeat time.Duration
	// Attach gives a container instance its network interface and returns its address and a way to listen there. Detach takes it away.
	Attach func(ctx context.Context, id string) (address string, listen Listen, err error)
	Detach func(id string) error
	// Log takes what goes wrong.
	Log io.Writer
}

// Listen opens a TCP listener at a container instance.
type Listen func(ctx context.Context, address string) (net.Listener, error)

// node is the running node.
type node struct {
	Options
	pods map[string]*pod // by UID
}

// pod is a container instance.
type pod struct {
	id, address string
	servers     []*http.Server
}

// Run registers the node and runs its pods until ctx ends. The Node stays, as that of a machine that lost its power.
func Run(ctx context.Context, opts Options) error {
	n := &node{Options: opts, pods: map[string]*pod{}}
	if err := n.register(ctx); err != nil {
		return err
	}
	var group sync.WaitGroup
	group.Go(func() { wait.UntilWithContext(ctx, n.beat, opts.Heartbeat) })
	wait.UntilWithContext(ctx, func(ctx context.Context) { n.complain(n.follow(ctx)) }, pollPeriod)
	group.Wait()
	var errs []error
	for uid := range n.pods {
		errs = append(errs, n.end(uid))
	}
	return errors.Join(errs...)
}

// register makes the Node: a virtual node has no cloud controller manager to wait for, so no taint of one.
func (n *node) register(ctx context.Context) error {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods: resource.MustParse("1000"),
	}
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
			"type": "virtual-kubelet", corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux",
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "virtual-kubelet.io/provider", Value: "alibabacloud",
			Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(),
			LastTransitionTime: metav1.Now(),
		}}},
	}
	if _, err := n.Client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register node %s: %w", n.Name, err)
	}
	return nil
}

// beat renews the Lease.
func (n *node) beat(ctx context.Context) {
	leases := n.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &n.Name, RenewTime: &now, LeaseDurationSeconds: ptr.To(int32(leaseFactor * n.Heartbeat / time.Second)),
			},
		}, metav1.CreateOptions{})
	case err == nil:
		lease.Spec.RenewTime = &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	n.complain(err)
}

// follow starts pods that are new on the node and ends those that are to go.
func (n *node) follow(ctx context.Context) error {
	list, err := n.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", n.Name, err)
	}
	exist := map[string]bool{}
	for i := range list.Items {
		object := &list.Items[i]
		uid := string(object.UID)
		exist[uid] = true
		switch {
		case object.DeletionTimestamp != nil:
			err = errors.Join(err, n.end(uid), n.remove(ctx, object))
		case n.pods[uid] == nil:
			err = errors.Join(err, n.begin(ctx, object))
		case object.Status.PodIP == "":
			err = errors.Join(err, n.report(ctx, object))
		}
	}
	for uid := range n.pods {
		if !exist[uid] {
			err = errors.Join(err, n.end(uid))
		}
	}
	return err
}

// begin makes the container instance of a pod.
func (n *node) begin(ctx context.Context, object *corev1.Pod) error {
	id := "eci-" + string(object.UID)
	address, listen, err := n.Attach(ctx, id)
	if err != nil {
		return fmt.Errorf("start pod %s: %w", object.Name, err)
	}
	p := &pod{id: id, address: address}
	n.pods[string(object.UID)] = p
	name := object.Name
	for _, container := range object.Spec.Containers {
		for _, port := range container.Ports {
			listener, err := listen(ctx, net.JoinHostPort(address, fmt.Sprint(port.ContainerPort)))
			if err != nil {
				return errors.Join(fmt.Errorf("start pod %s: %w", name, err), n.end(string(object.UID)))
			}
			server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Node", n.Name)
				w.Header().Set("Source", r.RemoteAddr)
				_, _ = fmt.Fprintln(w, name) // the asker is gone when this fails
			})}
			p.servers = append(p.servers, server)
			go func() { _ = server.Serve(listener) }() // ends with the pod
		}
	}
	return n.report(ctx, object)
}

// report writes the status of a pod that runs.
func (n *node) report(ctx context.Context, object *corev1.Pod) error {
	object = object.DeepCopy()
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: n.pods[string(object.UID)].address, StartTime: &now,
		PodIPs: []corev1.PodIP{{IP: n.pods[string(object.UID)].address}},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range object.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	object.Status = status
	if _, err := n.Client.CoreV1().Pods(object.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report pod %s: %w", object.Name, err)
	}
	return nil
}

// end takes the container instance of a pod away.
func (n *node) end(uid string) error {
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

// remove lets the API server forget a pod that has ended.
func (n *node) remove(ctx context.Context, object *corev1.Pod) error {
	err := n.Client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &object.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// complain logs what went wrong. The next poll is the next try; what was on its way when the node ended went wrong for no reason.
func (n *node) complain(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		_, _ = fmt.Fprintf(n.Log, "virtual node: %v\n", err) // a log that is gone helps nobody
	}
}
