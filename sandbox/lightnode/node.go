package lightnode

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// syncNode registers the node of a machine that was switched on, and reports it Ready whenever it is not.
func (k *Kubelets) syncNode(ctx context.Context, name string) error {
	machine := k.Network.machineOf(name)
	if machine == nil {
		return nil // not ours, or switched off: nobody speaks for this node
	}
	node, err := k.register(ctx, machine)
	if err != nil || node == nil {
		return err
	}
	k.leases.add(node)
	if node.Spec.PodCIDR != "" {
		if err = k.enqueuePodsOf(name); err != nil {
			return err
		}
	}
	if isReady(node) {
		return nil
	}
	node = node.DeepCopy()
	setReady(node, metav1.Now())
	_, err = k.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return wrap(err, "report node %s ready", name)
}

// register returns the machine's Node and creates it when this start of the kubelet has not done so. Like a kubelet it does not
// create it again when somebody deletes the Node: then it returns nil. Whether there is a Node at the start, only the API server
// knows: the informer may still show one that was deleted.
func (k *Kubelets) register(ctx context.Context, machine *machine) (*corev1.Node, error) {
	k.mu.Lock()
	registered := k.registered[machine.instanceID]
	k.mu.Unlock()
	if !registered {
		node, err := k.Client.CoreV1().Nodes().Create(ctx, newNode(machine, k.version, k.NodeIP), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("register node %s: %w", machine.nodeName, err)
		}
		k.setRegistered(machine)
		if err == nil {
			return node, nil
		}
	}
	object, found, err := k.nodes.GetStore().GetByKey(machine.nodeName)
	if !found || err != nil {
		return nil, nil // deleted, or the informer will show it
	}
	return object.(*corev1.Node), nil //nolint:forcetypeassert // the informer's type
}

func (k *Kubelets) setRegistered(machine *machine) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.registered[machine.instanceID] = true
}

// nodeGone ends the heartbeats of a deleted Node: a Lease without its Node would be made and collected for ever.
func (k *Kubelets) nodeGone(obj any) {
	if node, ok := deleted[*corev1.Node](obj); ok {
		k.leases.remove(node.Name)
	}
}

// newNode is what a kubelet under --cloud-provider=external registers: tainted until the cloud controller manager has initialized it,
// without provider ID, and without addresses of its own unless it was given --node-ip.
func newNode(machine *machine, version string, nodeIP bool) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("40Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: machine.nodeName,
			Labels: map[string]string{
				corev1.LabelHostname:      machine.nodeName,
				corev1.LabelOSStable:      "linux",
				corev1.LabelArchStable:    runtime.GOARCH,
				"beta.kubernetes.io/os":   "linux",
				"beta.kubernetes.io/arch": runtime.GOARCH,
			},
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{
			Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		}}},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: machine.nodeName}},
			NodeInfo: corev1.NodeSystemInfo{
				// The serial number that the virtual machine reports names the instance, as on ECS.
				MachineID: machine.instanceID, SystemUUID: machine.instanceID, BootID: machine.instanceID,
				KubeletVersion: version, ContainerRuntimeVersion: "light://1",
				OSImage: "Light node", KernelVersion: "none", OperatingSystem: "linux", Architecture: runtime.GOARCH,
			},
		},
	}
	if nodeIP {
		node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr] = machine.addr.String()
		node.Status.Addresses = append([]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: machine.addr.String()}},
			node.Status.Addresses...)
	}
	setReady(node, metav1.Now())
	return node
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setReady sets the conditions that a kubelet owns and leaves others, such as NetworkUnavailable, alone.
func setReady(node *corev1.Node, now metav1.Time) {
	for _, want := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
	} {
		want.LastHeartbeatTime, want.LastTransitionTime = now, now
		setNodeCondition(node, want)
	}
}

func setNodeCondition(node *corev1.Node, want corev1.NodeCondition) {
	for i, have := range node.Status.Conditions {
		if have.Type != want.Type {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		node.Status.Conditions[i] = want
		return
	}
	node.Status.Conditions = append(node.Status.Conditions, want)
}

// wrap adds what was attempted to an error and leaves nil alone.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
