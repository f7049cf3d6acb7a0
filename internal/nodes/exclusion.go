package nodes

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Labels that exclude a node from some or all of this program's work.
const (
	// LabelExcludeNode and LabelExcludeNodeLegacy are the official CCM's opt-out. Their values do not matter.
	LabelExcludeNode       = "service.alibabacloud.com/exclude-node"
	LabelExcludeNodeLegacy = "service.beta.kubernetes.io/exclude-node"
	// LabelExcludeBalancerAlpha is the predecessor of [corev1.LabelNodeExcludeBalancers]. Its value does not matter.
	LabelExcludeBalancerAlpha = "alpha.service-controller.kubernetes.io/exclude-balancer"
	// LabelType has the value TypeVirtualKubelet on nodes that are no machines.
	LabelType          = "type"
	TypeVirtualKubelet = "virtual-kubelet"
	// LabelLingjun is "true" on machines of the product Lingjun, which the ECS instance list never shows.
	LabelLingjun = "alibabacloud.com/lingjun-worker"
	// LabelOnPremises is "true" on machines outside of Alibaba Cloud, on premises or in another cloud, which have no ECS instance.
	LabelOnPremises = "node.alibabacloud.com/on-premises"
	// LabelMaster is on control-plane nodes that the official CCM keeps out of load balancers. Its value does not matter.
	LabelMaster = "node-role.kubernetes.io/master"
)

// ExclusionLabel returns the label that excludes the node from everything that this program does, as "key" or "key=value",
// or "" when none does.
func ExclusionLabel(node *corev1.Node) string {
	for _, key := range []string{LabelExcludeNode, LabelExcludeNodeLegacy} {
		if hasLabel(node, key) {
			return key
		}
	}
	switch {
	case IsVirtualKubelet(node):
		return LabelType + "=" + TypeVirtualKubelet
	case node.Labels[LabelLingjun] == "true":
		return LabelLingjun
	case IsOnPremises(node):
		return LabelOnPremises
	}
	return ""
}

// IsVirtualKubelet reports whether the node stands for no machine: nothing but its own pods runs there, and no instance is
// behind it.
func IsVirtualKubelet(node *corev1.Node) bool { return node.Labels[LabelType] == TypeVirtualKubelet }

// IsOnPremises reports whether the node's machine is declared to be outside of Alibaba Cloud, so that it has no instance to look
// for, no provider ID to wait for and no route to get.
func IsOnPremises(node *corev1.Node) bool { return node.Labels[LabelOnPremises] == "true" }

// BalancerExclusionLabel returns the label that keeps the node from being a backend, "" for none.
func BalancerExclusionLabel(node *corev1.Node) string {
	if excludedByValue(node) {
		return corev1.LabelNodeExcludeBalancers
	}
	keys := []string{LabelExcludeBalancerAlpha, LabelExcludeNode, LabelExcludeNodeLegacy}
	if at := slices.IndexFunc(keys, func(key string) bool { return hasLabel(node, key) }); at >= 0 {
		return keys[at]
	}
	return ""
}

// karpenter is the value that Karpenter gives the standard exclusion label, together with its taint [TaintDisrupted].
const karpenter = "karpenter"

// excludedByValue reads the standard exclusion label as the stock service controller does since Kubernetes 1.34: what is no boolean
// excludes, and "false" does not. Karpenter's does not either while its taint is there: the node leaves, and its connections are to end by
// themselves.
func excludedByValue(node *corev1.Node) bool {
	value, labeled := node.Labels[corev1.LabelNodeExcludeBalancers]
	excluded, err := strconv.ParseBool(value)
	return labeled && (excluded || err != nil) && (value != karpenter || !hasTaint(node, TaintDisrupted))
}

// IsControlPlane reports whether the node has a role label of the control plane.
func IsControlPlane(node *corev1.Node) bool {
	_, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]
	return controlPlane || IsMaster(node)
}

// IsMaster reports whether the node has the label [LabelMaster]. The label node-role.kubernetes.io/control-plane is not
// enough: kubeadm adds the standard exclusion label where the node is not to be a backend.
func IsMaster(node *corev1.Node) bool { return hasLabel(node, LabelMaster) }

func hasLabel(node *corev1.Node, key string) bool {
	_, ok := node.Labels[key]
	return ok
}
