package node

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Labels that are written on initialised nodes, as the official CCM writes them; schedulers and dashboards read them.
const (
	LabelChargeType   = "node.alibabacloud.com/instance-charge-type"
	LabelSpotStrategy = "node.alibabacloud.com/spot-strategy"
	LabelNodePoolID   = "node.alibabacloud.com/nodepool-id"

	// tagNodePoolID is the ECS tag that names the node pool.
	tagNodePoolID = "ack.alibabacloud.com/nodepool-id"
)

func (i *Instances) metadataOf(node *corev1.Node, instance alicloud.Instance) *cloudprovider.InstanceMetadata {
	providerID := node.Spec.ProviderID
	if providerID == "" {
		providerID = i.newProviderID(instance)
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:       providerID,
		InstanceType:     instance.Type,
		Zone:             instance.ZoneID,
		Region:           instance.RegionID,
		NodeAddresses:    addressesOf(instance, i.opts.IPv6),
		AdditionalLabels: labelsOf(instance),
	}
}

func (i *Instances) newProviderID(instance alicloud.Instance) string {
	id := ProviderID{Region: i.opts.Region, InstanceID: instance.ID}
	if i.opts.PrefixedProviderIDs {
		return id.Prefixed()
	}
	return id.String()
}

// addressesOf lists the instance's addresses in a stable order: private, public, elastic. All private ones are there,
// because the kubelet's --node-ip must be among them or the node is never initialised.
func addressesOf(instance alicloud.Instance, ipv6 bool) []corev1.NodeAddress {
	var addresses []corev1.NodeAddress
	add := func(kind corev1.NodeAddressType, values ...string) {
		for _, value := range values {
			if value != "" {
				addresses = append(addresses, corev1.NodeAddress{Type: kind, Address: value})
			}
		}
	}
	add(corev1.NodeInternalIP, instance.PrivateIPs...)
	if ipv6 {
		add(corev1.NodeInternalIP, instance.IPv6...)
	}
	add(corev1.NodeExternalIP, instance.PublicIPs...)
	add(corev1.NodeExternalIP, instance.EIP)
	return addresses
}

// labelsOf leaves out what would be no label value: the API server would refuse the whole node for it.
func labelsOf(instance alicloud.Instance) map[string]string {
	labels := map[string]string{}
	for key, value := range map[string]string{
		LabelChargeType:   instance.ChargeType,
		LabelSpotStrategy: instance.SpotStrategy,
		LabelNodePoolID:   instance.Tags[tagNodePoolID],
	} {
		if value = strings.TrimSpace(value); value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
	return labels
}
