package nodes

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// InternalIP returns the first InternalIP that the node reports, "" when it reports none.
func InternalIP(node *corev1.Node) string {
	for i := range node.Status.Addresses {
		if node.Status.Addresses[i].Type == corev1.NodeInternalIP {
			return node.Status.Addresses[i].Address
		}
	}
	return ""
}

// OwnAddresses returns the addresses by which the node's instance can be found, without duplicates: those of the kubelet's
// --node-ip first, then every InternalIP. What is not an IP address is left out.
func OwnAddresses(node *corev1.Node) []netip.Addr {
	candidates := strings.Split(node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr], ",")
	for i := range node.Status.Addresses {
		if node.Status.Addresses[i].Type == corev1.NodeInternalIP {
			candidates = append(candidates, node.Status.Addresses[i].Address)
		}
	}
	var addresses []netip.Addr
	for _, candidate := range candidates {
		address, err := netip.ParseAddr(strings.TrimSpace(candidate))
		if err == nil && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
