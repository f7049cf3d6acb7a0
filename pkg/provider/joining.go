package provider

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// routedInstances makes the network of a node unavailable before the stock node controller, which asks for the node's metadata
// first, takes its uninitialized taint off: otherwise pods could land on a node that has no route yet.
type routedInstances struct {
	cloudprovider.InstancesV2
	begin func(ctx context.Context, node *corev1.Node) error
}

// InstanceMetadata implements [cloudprovider.InstancesV2].
func (i routedInstances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*cloudprovider.InstanceMetadata, error) {
	metadata, err := i.InstancesV2.InstanceMetadata(ctx, node)
	if err != nil || metadata == nil || metadata.ProviderID == "" {
		return metadata, err
	}
	return metadata, i.begin(ctx, node)
}

// beginJoining does nothing where this program does not know to manage routes. The stock route controller sets the condition
// itself.
func (c *Cloud) beginJoining(ctx context.Context, node *corev1.Node) error {
	if len(c.settings.ClusterCIDRs) == 0 || !nodes.Uninitialized(node) {
		return nil
	}
	return vpcroute.BeginJoining(ctx, c.kube, node, nodes.ExclusionLabel(node) == "")
}
