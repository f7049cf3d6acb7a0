package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// nodesAreInitialized waits until each Node shows what the cloud knows of its instance.
func nodesAreInitialized(ctx context.Context, s *story) (string, error) {
	machines := s.instances()
	err := s.until(ctx, func(ctx context.Context) (string, error) {
		list, err := s.clusterNodes(ctx)
		if err != nil {
			return "", err
		}
		for _, machine := range machines {
			i := slices.IndexFunc(list, func(node corev1.Node) bool { return node.Name == machine.NodeName })
			if i < 0 {
				return "", fmt.Errorf("node %s has left", machine.NodeName)
			}
			if missing := uninitialized(&list[i], machine); missing != "" {
				return missing, nil
			}
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	var seen []string
	for _, machine := range machines {
		seen = append(seen, fmt.Sprintf("%s %s %s %s", machine.NodeName, machine.PrivateIP, machine.ZoneID, machine.InstanceType))
	}
	return strings.Join(seen, ", ") + "; no taint", nil
}

// uninitialized says what a Node still lacks, or returns an empty string.
func uninitialized(node *corev1.Node, machine cluster.Machine) string {
	address := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: machine.PrivateIP}
	if !slices.Contains(node.Status.Addresses, address) {
		return fmt.Sprintf("node %s has the addresses %v, without InternalIP %s", node.Name, node.Status.Addresses, machine.PrivateIP)
	}
	for label, want := range map[string]string{
		corev1.LabelTopologyRegion: machine.RegionID, corev1.LabelTopologyZone: machine.ZoneID,
		corev1.LabelInstanceTypeStable: machine.InstanceType,
	} {
		if got := node.Labels[label]; got != want {
			return fmt.Sprintf("node %s has the label %s=%q, not %q", node.Name, label, got, want)
		}
	}
	if isTainted(node) {
		return fmt.Sprintf("node %s has lost no taint", node.Name)
	}
	return ""
}
