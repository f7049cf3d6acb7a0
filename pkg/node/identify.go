package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
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
		if reason := nodes.ExclusionLabel(node); reason != "" {
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

// productOfOther reports whether the id is one of elastic container instances or Lingjun machines. The ECS list never
// holds them, so that asking ECS would call every one of them gone.
func productOfOther(instanceID string) bool {
	return strings.HasPrefix(instanceID, "eci-") || strings.HasPrefix(instanceID, "e01-")
}

// untouchable reports whether err, one of [InstanceIDOf], means that the node is none of ours.
func untouchable(err error) bool {
	return errors.Is(err, ErrProviderIDForeign) || errors.Is(err, ErrOtherRegion) || errors.Is(err, ErrNodeExcluded)
}

// nodeAddress returns the address by which the node's instance is found: its first IPv4 address, because ECS searches by no
// other, else its first address, else "".
func nodeAddress(node *corev1.Node) string {
	own := nodes.OwnAddresses(node)
	if len(own) == 0 {
		return ""
	}
	first := max(0, slices.IndexFunc(own, netip.Addr.Is4))
	return own[first].String()
}
