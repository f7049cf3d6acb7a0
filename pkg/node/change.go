package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// reconciledLabels are the labels that follow the instance.
var reconciledLabels = []string{
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion, LabelChargeType, LabelSpotStrategy, LabelNodePoolID,
}

// change is what a Node lacks.
type change struct {
	labels     map[string]string
	providerID string
	// initialize takes the uninitialized taint off.
	initialize bool
}

func (c change) empty() bool { return len(c.labels) == 0 && c.providerID == "" && !c.initialize }

// String lists the change for a log line.
func (c change) String() string {
	var parts []string
	if c.providerID != "" {
		parts = append(parts, "spec.providerID="+c.providerID)
	}
	for _, key := range slices.Sorted(maps.Keys(c.labels)) {
		parts = append(parts, key+"="+c.labels[key])
	}
	if c.initialize {
		parts = append(parts, cloudproviderapi.TaintExternalCloudProvider+"-")
	}
	return strings.Join(parts, " ")
}

// changeOf compares the Node with its instance. Nodes that wait for their initialization are left to the stock controller, which
// writes the same, unless they are on premises. Where ECS shows no instance, an event says so and nothing changes.
func (i *Instances) changeOf(ctx context.Context, node *corev1.Node) (change, error) {
	if i.opts.onPremises(node) {
		found := change{initialize: nodes.Uninitialized(node)}
		if !nodes.IsOnPremises(node) {
			found.labels = map[string]string{nodes.LabelOnPremises: "true"}
		}
		return found, nil
	}
	if nodes.Uninitialized(node) {
		return change{}, nil
	}
	instance, err := i.find(ctx, node)
	switch {
	case untouchable(err), errors.Is(err, ErrProviderIDMalformed), errors.Is(err, errRefusedID):
		return change{}, nil
	case err != nil:
		return change{}, err
	}
	found := change{labels: map[string]string{}}
	if node.Spec.ProviderID == "" {
		found.providerID = i.newProviderID(instance)
	}
	for key, value := range instanceLabels(instance) {
		if current, ok := node.Labels[key]; !ok || current != value {
			found.labels[key] = value
		}
	}
	return found, nil
}

// instanceLabels are all labels that a Node has of its instance. What would be no label value is left out.
func instanceLabels(instance alicloud.Instance) map[string]string {
	labels := labelsOf(instance)
	for _, neutral := range []struct {
		value string
		keys  []string
	}{
		{instance.Type, []string{corev1.LabelInstanceType, corev1.LabelInstanceTypeStable}},
		{instance.ZoneID, []string{corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone}},
		{instance.RegionID, []string{corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion}},
	} {
		if neutral.value == "" || len(validation.IsValidLabelValue(neutral.value)) > 0 {
			continue
		}
		for _, key := range neutral.keys {
			labels[key] = neutral.value
		}
	}
	return labels
}

// patch returns a merge patch that the API server refuses with a conflict unless the Node is still the one that was compared:
// neither a provider ID that somebody else set meanwhile, nor a taint that somebody else added, is overwritten.
func (c change) patch(node *corev1.Node) ([]byte, error) {
	type metadata struct {
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels,omitempty"`
	}
	patch := struct {
		Metadata metadata       `json:"metadata"`
		Spec     map[string]any `json:"spec,omitempty"`
	}{Metadata: metadata{node.UID, node.ResourceVersion, c.labels}, Spec: map[string]any{}}
	if c.providerID != "" {
		patch.Spec["providerID"] = c.providerID
	}
	if c.initialize {
		patch.Spec["taints"] = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
			return taint.Key == cloudproviderapi.TaintExternalCloudProvider
		})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the patch of node %s: %w", node.Name, err)
	}
	return data, nil
}
