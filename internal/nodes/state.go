package nodes

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// TaintToBeDeleted is the cluster autoscaler's, on nodes that it is about to remove, and TaintDisrupted Karpenter's.
const (
	TaintToBeDeleted = "ToBeDeletedByClusterAutoscaler"
	TaintDisrupted   = "karpenter.sh/disrupted"
)

// leavingTaints are those of programs that are about to remove the node, and of an administrator who gives it up.
var leavingTaints = []string{TaintToBeDeleted, TaintDisrupted, "karpenter.sh/disruption", corev1.TaintNodeOutOfService}

// leavingMark is Cluster API's, as an annotation or label, on what it is to delete first.
const leavingMark = "cluster.x-k8s.io/delete-machine"

// hasTaint reports whether the node has a taint with the key, whatever its value and effect.
func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
}

// Uninitialized reports whether the node still waits for its cloud provider.
func Uninitialized(node *corev1.Node) bool {
	return hasTaint(node, cloudproviderapi.TaintExternalCloudProvider)
}

// ShutDown reports whether the node-lifecycle controller found the node's instance stopped.
func ShutDown(node *corev1.Node) bool { return hasTaint(node, cloudproviderapi.TaintNodeShutdown) }

// Leaving reports whether the node is about to go: its object is being deleted, or a mark of those who remove nodes says so.
func Leaving(node *corev1.Node) bool { return LeavingBecause(node) != "" }

// LeavingBecause says why the node is about to go, "" where it is not.
func LeavingBecause(node *corev1.Node) string {
	_, annotated := node.Annotations[leavingMark]
	if node.DeletionTimestamp != nil {
		return "the Node is being deleted"
	}
	if annotated || hasLabel(node, leavingMark) {
		return "the mark " + leavingMark
	}
	if at := slices.IndexFunc(leavingTaints, func(key string) bool { return hasTaint(node, key) }); at >= 0 {
		return "the taint " + leavingTaints[at]
	}
	return ""
}

// Condition returns the condition of the type, nil when the node has none.
func Condition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// Ready reports whether the kubelet says that the node is ready.
func Ready(node *corev1.Node) bool {
	condition := Condition(node, corev1.NodeReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// Silent reports whether the cluster has not heard from the node's kubelet for its grace period of 40 s (by default), and
// since when it says so. A kubelet that reports a node as not ready is not silent, and neither is one that has not reported
// yet.
func Silent(node *corev1.Node) (since time.Time, silent bool) {
	condition := Condition(node, corev1.NodeReady)
	if condition == nil || condition.Status != corev1.ConditionUnknown {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}

// PodCIDRs returns the pod CIDRs that the node was assigned, none when it has none yet.
func PodCIDRs(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}

// ByAge compares two Nodes by when they were registered, then by their names: the order in which Nodes have the right to what only one can
// have, for example an instance or a pod CIDR.
func ByAge(a, b *corev1.Node) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
