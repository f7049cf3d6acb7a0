package node

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Labels that are written on initialized nodes, as the official CCM writes them; schedulers and dashboards read them.
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
		NodeAddresses:    i.addressesFor(node, instance),
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
