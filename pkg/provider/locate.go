package provider

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// place is where in the cloud the cluster lives.
type place struct {
	vpcID      string
	vSwitchIDs []string
}

// maxNodesAsked is how many nodes are looked up to find the VPC; one would do, a few more show that they agree.
const maxNodesAsked = 20

// locate takes what is configured, and the rest from the metadata service, else from the ECS instances of the nodes. It
// returns no vSwitch where neither is in the configured VPC.
func (c *Cloud) locate(ctx context.Context, client *alicloud.Client, kube kubernetes.Interface) (place, error) {
	configured := place{vpcID: c.config.VPCID, vSwitchIDs: c.config.VSwitchIDs}
	if configured.vpcID != "" && len(configured.vSwitchIDs) > 0 {
		return configured, nil
	}
	found, err := c.locateByMetadata(ctx, client.Region())
	if err != nil {
		byMetadata := err
		if found, err = locateByNodes(ctx, client, kube); err != nil {
			err = fmt.Errorf("%w; %w", byMetadata, err)
		}
	}
	switch {
	case configured.vpcID == "" && err != nil:
		return place{}, fmt.Errorf("Global.vpcid: not set, and neither the metadata service nor the nodes show it: %w, accepted: a VPC id", err)
	case configured.vpcID == "":
		configured.vpcID = found.vpcID
	case err != nil || found.vpcID != configured.vpcID:
		return configured, nil //nolint:nilerr // the VPC is configured; only a vSwitch near this machine is not known
	}
	if len(configured.vSwitchIDs) == 0 {
		configured.vSwitchIDs = found.vSwitchIDs
	}
	return configured, nil
}

// locateByMetadata is right only where this process runs on a machine of the configured region.
func (c *Cloud) locateByMetadata(ctx context.Context, region string) (place, error) {
	here, err := c.metadata.RegionID(ctx)
	if err != nil {
		return place{}, err
	}
	if here != region {
		return place{}, fmt.Errorf("metadata service: this machine is in region %s, not in %s", here, region)
	}
	vpcID, err := c.metadata.VPCID(ctx)
	if err != nil {
		return place{}, err
	}
	vSwitchID, err := c.metadata.VSwitchID(ctx)
	if err != nil {
		return place{}, err
	}
	return place{vpcID: vpcID, vSwitchIDs: []string{vSwitchID}}, nil
}

func locateByNodes(ctx context.Context, client *alicloud.Client, kube kubernetes.Interface) (place, error) {
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxNodesAsked})
	if err != nil {
		return place{}, fmt.Errorf("list nodes: %w", err)
	}
	query := queryFor(nodes.Items, client.Region())
	if len(query.IDs)+len(query.PrivateIPs) == 0 { // an empty query would select every instance of the region
		return place{}, fmt.Errorf("none of %d nodes has a provider ID or an address", len(nodes.Items))
	}
	instances, err := client.DescribeInstances(ctx, query)
	if err != nil {
		return place{}, fmt.Errorf("find the nodes' instances: %w", err)
	}
	return placeOf(instances, len(nodes.Items))
}

// queryFor asks by provider ID where nodes have one, else by address.
func queryFor(nodes []corev1.Node, region string) alicloud.InstanceQuery {
	var query alicloud.InstanceQuery
	instanceID := node.InstanceIDOf(region)
	for i := range nodes {
		if id, err := instanceID(&nodes[i]); err == nil {
			query.IDs = append(query.IDs, id)
		}
		for _, address := range nodes[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				query.PrivateIPs = append(query.PrivateIPs, address.Address)
			}
		}
	}
	if len(query.IDs) > 0 {
		query.PrivateIPs = nil
	}
	return query
}

func placeOf(instances []alicloud.Instance, nodes int) (place, error) {
	vpcs, vSwitches := sets.New[string](), sets.New[string]()
	for i := range instances {
		vpcs.Insert(instances[i].VPCID)
		vSwitches.Insert(instances[i].VSwitchID)
	}
	switch {
	case len(instances) == 0:
		return place{},
			fmt.Errorf("none of %d nodes is an ECS instance that the key sees in this region; it needs the permission ecs:DescribeInstances", nodes)
	case vpcs.Len() > 1:
		return place{}, fmt.Errorf("the nodes are in several VPCs: %v", sets.List(vpcs))
	}
	return place{vpcID: sets.List(vpcs)[0], vSwitchIDs: sets.List(vSwitches)}, nil
}

// byFreeAddresses returns the ids of the vSwitches, the one with most free addresses first. It serves a configured VPC in
// which this process does not run.
func byFreeAddresses(vSwitches []alicloud.VSwitch) []string {
	sorted := slices.SortedFunc(slices.Values(vSwitches), func(a, b alicloud.VSwitch) int { return b.AvailableIPs - a.AvailableIPs })
	ids := make([]string, len(sorted))
	for i := range sorted {
		ids[i] = sorted[i].ID
	}
	return ids
}
