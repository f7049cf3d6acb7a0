package testkube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// Region is the region of the emulator's built-in configuration.
const Region = "cn-hangzhou"

// Node returns a ready Node whose machine is [InstanceOf] its name.
func Node(name string, change ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec:   corev1.NodeSpec{ProviderID: Region + "." + InstanceOf(name)},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, f := range change {
		f(node)
	}
	return node
}

// Nodes returns a Node for each name.
func Nodes(names ...string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, name := range names {
		nodes = append(nodes, Node(name))
	}
	return nodes
}

// ChangeNode changes a Node of the API server.
func ChangeNode(tb testing.TB, kube kubernetes.Interface, name string, change func(*corev1.Node)) {
	tb.Helper()
	node := testkit.Must(kube.CoreV1().Nodes().Get(tb.Context(), name, metav1.GetOptions{}))(tb)
	if node.Labels == nil { // a patch of the fake API server leaves out what is empty
		node.Labels = map[string]string{}
	}
	change(node)
	testkit.Must(kube.CoreV1().Nodes().Update(tb.Context(), node, metav1.UpdateOptions{}))(tb)
}

// Ready returns the Ready condition of a Node of this package, to be changed.
func Ready(node *corev1.Node) *corev1.NodeCondition {
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	return &node.Status.Conditions[at]
}

// InstanceOf is the id of the ECS instance that a Node of this package stands for.
func InstanceOf(node string) string { return "i-" + node }

// InstanceID reads a provider ID of the form region.instance. It stands for pkg/node's parser in packages that may not know that.
func InstanceID(node *corev1.Node) (string, error) {
	region, id, ok := strings.Cut(node.Spec.ProviderID, ".")
	if !ok || region != Region {
		return "", fmt.Errorf("provider ID %q is none of ours", node.Spec.ProviderID)
	}
	return id, nil
}

// NodeLabel sets a label.
func NodeLabel(key, value string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels[key] = value }
}

// Taint adds a taint. The effect matters to few tests: without one it is NoSchedule.
func Taint(key string, effect ...corev1.TaintEffect) func(*corev1.Node) {
	taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
	if len(effect) > 0 {
		taint.Effect = effect[0]
	}
	return func(node *corev1.Node) { node.Spec.Taints = append(node.Spec.Taints, taint) }
}

// ProviderID sets spec.providerID.
func ProviderID(id string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Spec.ProviderID = id }
}

// Cordoned makes the Node unschedulable.
func Cordoned(node *corev1.Node) { node.Spec.Unschedulable = true }

// Silent gives the Node the condition Ready=Unknown since the time: its kubelet no longer reports.
func Silent(since time.Time) func(*corev1.Node) { return ready(corev1.ConditionUnknown, since) }

// NotReady gives the Node the condition Ready=False since the time: its kubelet reports that it is not ready.
func NotReady(since time.Time) func(*corev1.Node) { return ready(corev1.ConditionFalse, since) }

func ready(status corev1.ConditionStatus, since time.Time) func(*corev1.Node) {
	return func(node *corev1.Node) {
		condition := Ready(node)
		condition.Status, condition.LastTransitionTime = status, metav1.NewTime(since)
	}
}
