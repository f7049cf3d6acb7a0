package node

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// Labels that take a node out of this program's hands. The first two are the official CCM's opt-out; virtual nodes and
// Lingjun machines belong to other products and are not in the ECS instance list.
const (
	labelExcludeNode       = "service.alibabacloud.com/exclude-node"
	labelExcludeNodeLegacy = "service.beta.kubernetes.io/exclude-node"
	labelNodeType          = "type"
	nodeTypeVirtualKubelet = "virtual-kubelet"
	labelLingjun           = "alibabacloud.com/lingjun-worker"
)

var (
	// ErrNodeExcluded says that labels keep the node out of this program's hands.
	ErrNodeExcluded = errors.New("the node is excluded by its labels")
	// ErrOtherRegion says that the provider ID names an instance of another region.
	ErrOtherRegion = errors.New("the provider ID names another region")
)

// InstanceIDOf returns a function that gives the instance id of a node of the region. Its error wraps one of
// [ErrProviderIDEmpty], [ErrProviderIDForeign], [ErrProviderIDMalformed], [ErrOtherRegion] and [ErrNodeExcluded].
func InstanceIDOf(region string) func(*corev1.Node) (string, error) {
	return func(node *corev1.Node) (string, error) {
		if reason := exclusion(node); reason != "" {
			return "", fmt.Errorf("node %s: %w: %s", node.Name, ErrNodeExcluded, reason)
		}
		id, err := ParseProviderID(node.Spec.ProviderID)
		if err != nil {
			return "", fmt.Errorf("node %s: %w", node.Name, err)
		}
		if id.Region != region {
			return "", fmt.Errorf("node %s: %w: %q, the cluster is in %q", node.Name, ErrOtherRegion, id.Region, region)
		}
		if productOfOther(id.InstanceID) {
			return "", fmt.Errorf("node %s: %w: %q", node.Name, ErrProviderIDForeign, node.Spec.ProviderID)
		}
		return id.InstanceID, nil
	}
}

// exclusion returns the label that excludes the node, or "".
func exclusion(node *corev1.Node) string {
	for _, key := range []string{labelExcludeNode, labelExcludeNodeLegacy} {
		if _, ok := node.Labels[key]; ok {
			return key
		}
	}
	if node.Labels[labelNodeType] == nodeTypeVirtualKubelet {
		return labelNodeType + "=" + nodeTypeVirtualKubelet
	}
	if node.Labels[labelLingjun] == "true" {
		return labelLingjun
	}
	return ""
}

// productOfOther reports whether the id is one of elastic container instances or Lingjun machines. The ECS list never
// holds them, so that asking ECS would call every one of them gone.
func productOfOther(instanceID string) bool {
	return strings.HasPrefix(instanceID, "eci-") || strings.HasPrefix(instanceID, "e01-")
}

// untouchable reports whether err, one of [InstanceIDOf], means that the node is none of ours.
func untouchable(err error) bool {
	return errors.Is(err, ErrProviderIDForeign) || errors.Is(err, ErrOtherRegion) || errors.Is(err, ErrNodeExcluded)
}

func uninitialized(node *corev1.Node) bool {
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Key == cloudproviderapi.TaintExternalCloudProvider {
			return true
		}
	}
	return false
}

func ready(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// nodeAddress returns the address by which the node's instance can be found: what the kubelet was told to use, else the
// first internal address that it reports.
func nodeAddress(node *corev1.Node) string {
	if provided := node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr]; provided != "" {
		first, _, _ := strings.Cut(provided, ",")
		return strings.TrimSpace(first)
	}
	for i := range node.Status.Addresses {
		if node.Status.Addresses[i].Type == corev1.NodeInternalIP {
			return node.Status.Addresses[i].Address
		}
	}
	return ""
}
