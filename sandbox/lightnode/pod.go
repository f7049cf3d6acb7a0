package lightnode

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const indexByNode = "node"

func podNodeIndex(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// selectBoundPods leaves out pods that no node has yet.
func selectBoundPods(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
}

// enqueuePodsOf enqueues the pods that wait for their node's pod CIDR, or for its machine to come back.
func (k *Kubelets) enqueuePodsOf(nodeName string) error {
	keys, err := k.pods.GetIndexer().IndexKeys(indexByNode, nodeName)
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", nodeName, err)
	}
	for _, key := range keys {
		k.queue.Add(item{pod: key})
	}
	return nil
}

// podGone frees what a pod had when it has left the API.
func (k *Kubelets) podGone(obj any) {
	if pod, ok := deleted[*corev1.Pod](obj); ok {
		k.runs.end(pod.UID)
		k.Network.stopPod(pod.Namespace + "/" + pod.Name)
		k.ipam.release(pod.UID)
	}
}

// syncPod brings a pod one step further: up, completed if it is a job's, gone if it is being deleted. Those that a runner takes are left
// to it.
func (k *Kubelets) syncPod(ctx context.Context, key string) error {
	object, found, err := k.pods.GetStore().GetByKey(key)
	if err != nil || !found {
		return wrap(err, "look up pod %s", key)
	}
	pod := object.(*corev1.Pod) //nolint:forcetypeassert // the informer's type
	machine := k.Network.machineOf(pod.Spec.NodeName)
	if machine == nil {
		return nil // no kubelet, no news
	}
	if pod.DeletionTimestamp != nil {
		return k.confirmDeletion(ctx, key, pod)
	}
	if finished(pod) {
		k.runs.end(pod.UID)
		k.Network.stopPod(key)
		return nil
	}
	if k.runs.takes(pod) {
		k.runs.start(pod, machine)
		return nil
	}
	addrs, err := k.podAddresses(pod, machine)
	if err != nil || len(addrs) == 0 {
		return err
	}
	k.Network.startPod(&runningPod{
		key: key, name: pod.Name, machine: machine, addrs: addrs, hostNetwork: pod.Spec.HostNetwork, ports: tcpPorts(pod),
	})
	status := nextStatus(pod, machine.addr, addrs, metav1.Now())
	if apiequality.Semantic.DeepEqual(status, pod.Status) {
		return nil
	}
	pod = pod.DeepCopy()
	pod.Status = status
	_, err = k.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return wrap(err, "report pod %s", key)
}

// podAddresses are the pod's addresses, one of each pod CIDR of its node; none while that has no pod CIDR yet.
func (k *Kubelets) podAddresses(pod *corev1.Pod, machine *machine) ([]netip.Addr, error) {
	if pod.Spec.HostNetwork {
		return []netip.Addr{machine.addr}, nil
	}
	object, found, err := k.nodes.GetStore().GetByKey(pod.Spec.NodeName)
	if err != nil || !found {
		return nil, wrap(err, "look up node %s", pod.Spec.NodeName)
	}
	var addrs []netip.Addr
	for _, cidr := range object.(*corev1.Node).Spec.PodCIDRs { //nolint:forcetypeassert // the informer's type
		addr, err := k.ipam.claim(pod.UID, cidr)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// confirmDeletion ends the pod at once: its containers have nothing to finish.
func (k *Kubelets) confirmDeletion(ctx context.Context, key string, pod *corev1.Pod) error {
	k.runs.end(pod.UID)
	k.Network.stopPod(key)
	return confirmDeletion(ctx, k.Client, pod)
}

// confirmDeletion lets the API server forget a pod that has ended.
func confirmDeletion(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or a successor of the same name
	}
	return wrap(err, "confirm the deletion of pod %s", pod.Name)
}

// emulated is what "kubectl get pods" shows instead of Running: nobody shall take a program for one that runs.
const (
	emulated        = "Emulated"
	emulatedMessage = "No container runs: a light node only answers HTTP requests at the ports of the pod. " +
		"With --bin-dir, the sandbox runs the programs of this project."
)

// nextStatus is the status that the pod's kubelet reports next: Running and Ready, and Succeeded for a job's pod that runs already.
func nextStatus(pod *corev1.Pod, hostIP netip.Addr, podIPs []netip.Addr, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	done := status.Phase == corev1.PodRunning && ofJob(pod)
	status.Phase, status.Reason, status.Message = corev1.PodRunning, emulated, emulatedMessage
	if done {
		status.Phase = corev1.PodSucceeded
	}
	status.HostIP, status.HostIPs = hostIP.String(), []corev1.HostIP{{IP: hostIP.String()}}
	status.PodIP, status.PodIPs = podIPs[0].String(), nil
	for _, ip := range podIPs {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip.String()})
	}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	setPodCondition(&status, corev1.PodInitialized, true, now)
	setPodCondition(&status, corev1.ContainersReady, !done, now)
	setPodCondition(&status, corev1.PodReady, !done && gatesOpen(pod), now)
	status.ContainerStatuses = containerStatuses(pod, done, now)
	return status
}

// containerStatuses keeps the times of containers that were reported before.
func containerStatuses(pod *corev1.Pod, done bool, now metav1.Time) []corev1.ContainerStatus {
	started := map[string]metav1.Time{}
	for _, have := range pod.Status.ContainerStatuses {
		if have.State.Running != nil {
			started[have.Name] = have.State.Running.StartedAt
		}
	}
	statuses := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, container := range pod.Spec.Containers {
		since, ok := started[container.Name]
		if !ok {
			since = now
		}
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
		if done {
			state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: since, FinishedAt: now}}
		}
		statuses = append(statuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image, Ready: !done, Started: ptr.To(!done), State: state,
		})
	}
	return statuses
}

func setPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value bool, now metav1.Time) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: now}
	if value {
		want.Status = corev1.ConditionTrue
	}
	for i, have := range status.Conditions {
		if have.Type == kind {
			if have.Status != want.Status {
				status.Conditions[i] = want
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, want)
}

// gatesOpen says whether every condition that the pod's readiness gates name is true.
func gatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, condition := range pod.Status.Conditions {
			open = open || condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue
		}
		if !open {
			return false
		}
	}
	return true
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ofJob reports whether a pod runs to completion instead of serving.
func ofJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "Job" || owner.Kind == "BroadcastJob")
}

func tcpPorts(pod *corev1.Pod) []int32 {
	var ports []int32
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
				ports = append(ports, port.ContainerPort)
			}
		}
	}
	return ports
}
